use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use pin_project_lite::pin_project;
use tokio::runtime::Handle;

use super::error::Panicked;
use super::shared::Shared;
use crate::run_delay;
use crate::thread_state::cpu_time;

/// Polls that hold a thread for less are too short for a reading of 4 us to pay.
const LOOKED_UP_FROM: Duration = Duration::from_millis(1);

pin_project! {
    /// Work on a stage's thread: polled and dropped within the runtime that submitted it, so that
    /// its timers and sockets belong there; its time taken, its panics caught.
    pub(crate) struct Metered<F> {
        #[pin]
        work: Option<F>,
        runtime: Option<Handle>,
        stage: Arc<Shared>,
        wanted: Duration,
        held: Duration,
    }

    impl<F> PinnedDrop for Metered<F> {
        fn drop(this: Pin<&mut Self>) {
            this.discard();
        }
    }
}

impl<F> Metered<F> {
    pub(crate) fn new(work: F, stage: Arc<Shared>) -> Self {
        Self {
            work: Some(work),
            runtime: Handle::try_current().ok(),
            stage,
            wanted: Duration::ZERO,
            held: Duration::ZERO,
        }
    }

    /// A destructor that panics costs no thread either.
    fn discard(self: Pin<&mut Self>) {
        let mut this = self.project();
        if this.work.is_none() {
            return;
        }
        let _entered = this.runtime.as_ref().map(Handle::enter);
        let dropped = catch_unwind(AssertUnwindSafe(|| this.work.set(None)));
        if let Err(payload) = dropped {
            this.stage.log_panic(&Panicked::new(&*payload));
        }
    }
}

impl<F: Future> Future for Metered<F> {
    type Output = Result<F::Output, Panicked>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let polled = self.as_mut().poll_metered(cx);
        let ended = match polled {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(output)) => Ok(output),
            Err(panicked) => Err(panicked),
        };
        self.as_mut().discard();
        let this = self.project();
        this.stage
            .end(*this.wanted, *this.held, ended.as_ref().err());
        Poll::Ready(ended)
    }
}

impl<F: Future> Metered<F> {
    fn poll_metered(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Result<Poll<F::Output>, Panicked> {
        let mut this = self.project();
        let work = this.work.as_mut().as_pin_mut().expect("polled until ready");
        let _entered = this.runtime.as_ref().map(Handle::enter);
        let (began, cpu_began) = (Instant::now(), cpu_time());
        let polled = catch_unwind(AssertUnwindSafe(|| work.poll(cx)));
        let held = began.elapsed();
        *this.held += held;
        *this.wanted += wanted(cpu_time().saturating_sub(cpu_began), held);
        polled.map_err(|payload| Panicked::new(&*payload))
    }
}

/// For how long a poll wanted a processor, having one or not. What the thread was kept waiting is
/// looked up for long polls only, so it may include what came of short ones before; it is never
/// more than the poll was off the processor.
fn wanted(cpu: Duration, held: Duration) -> Duration {
    if held <= LOOKED_UP_FROM {
        return cpu;
    }
    cpu + run_delay::since_last().min(held.saturating_sub(cpu))
}
