use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use greenroom_actor::ActorRef;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::PublishSettings;
use crate::remote::{Handlers, RemoteActor};
use crate::wire::{Inbound, Rejection, Request, Response};

/// The member of a group at this node.
pub(crate) struct Member<A: RemoteActor> {
    actor: ActorRef<A>,
    handlers: Handlers<A>,
    settings: PublishSettings,
    permits: Arc<Semaphore>,
    is_draining: AtomicBool,
    /// The mean time that requests took here of late, in nanoseconds.
    mean: AtomicU64,
}

impl<A: RemoteActor> Member<A> {
    pub(crate) fn new(actor: ActorRef<A>, settings: PublishSettings) -> Self {
        Self {
            actor,
            handlers: Handlers::of_actor(),
            permits: Arc::new(Semaphore::new(settings.in_flight_max)),
            settings,
            is_draining: AtomicBool::new(false),
            mean: AtomicU64::new(0),
        }
    }

    pub(crate) fn drain(&self) {
        self.is_draining.store(true, Ordering::Relaxed);
    }

    /// Waits until nothing is under way.
    pub(crate) async fn idle(&self) {
        let all = u32::try_from(self.settings.in_flight_max).unwrap_or(u32::MAX);
        let _ = self.permits.acquire_many(all).await;
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.settings.in_flight_max - self.permits.available_permits()
    }

    /// Notes the time that a request took: a mean in which the last one weighs an eighth.
    fn took(&self, time: Duration) {
        let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let mean = self.mean.load(Ordering::Relaxed);
        let mean = if mean == 0 {
            time
        } else {
            mean - mean / 8 + time / 8
        };
        self.mean.store(mean, Ordering::Relaxed);
    }
}

impl<A: RemoteActor> Inbound for Member<A> {
    fn handle(self: Arc<Self>, request: Request) -> BoxFuture<'static, Response> {
        if self.is_draining() {
            return Response::rejected(Rejection::Draining).later();
        }
        let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() else {
            return Response::rejected(Rejection::busy(Some(self.wait()))).later();
        };
        let begin = Instant::now();
        let (actor, payload) = (self.actor.clone(), request.payload);
        let handling = self
            .handlers
            .handle(actor, &request.message, payload, request.timeout);
        // Small, as each request has one: a larger piece of memory costs an allocator much more.
        async move {
            let outcome = handling.await;
            drop(permit);
            self.took(begin.elapsed());
            Response {
                outcome,
                wait: self.wait(),
            }
        }
        .boxed()
    }

    fn wait(&self) -> Duration {
        let reported = self.settings.reported_wait.as_deref();
        if let Some(wait) = reported.and_then(guarded) {
            return wait;
        }
        // As long as something is under way, a new request takes about as long as the last did.
        if self.in_flight() == 0 {
            return Duration::ZERO;
        }
        Duration::from_nanos(self.mean.load(Ordering::Relaxed))
    }

    fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Relaxed) || !self.actor.is_alive()
    }
}

/// Asks a user's function for the wait: `None` if it panics, which the hook of panics has told.
fn guarded(wait: impl Fn() -> Duration) -> Option<Duration> {
    catch_unwind(AssertUnwindSafe(wait)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_that_panics_is_none() {
        assert_eq!(
            guarded(|| Duration::from_secs(1)),
            Some(Duration::from_secs(1))
        );
        assert_eq!(guarded(|| panic!("as a user's function may")), None);
    }
}
