//! Durable messages within one process: they last as long as it does.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

use super::consumer::{PAUSE_MAX, PAUSE_MIN};
use super::{DUPLICATE_WINDOW, Delivery};
use crate::core::Core;
use crate::remote::{RemoteError, TIMEOUT_MAX};
use crate::wire::Request;

/// The durable messages that wait or are under way in a process alone.
const WAITING_MAX: u64 = 65_536;
/// The identities that are remembered at a time, each for two minutes.
const TAKEN_MAX: usize = 262_144;

/// The durable messages of a process alone.
#[derive(Default)]
pub(crate) struct LocalDurable {
    /// Those that wait or are under way.
    waiting: AtomicU64,
    taken: Mutex<Taken>,
}

/// The identities of the messages that were taken of late, the oldest first.
#[derive(Default)]
struct Taken {
    known: HashSet<Arc<str>>,
    order: VecDeque<(Instant, Arc<str>)>,
}

/// The outcome of a look at a message.
#[derive(Debug, PartialEq, Eq)]
enum Look {
    New,
    Duplicate,
    /// As many are remembered as may be, and one fewer after this time.
    Full(Duration),
}

impl Taken {
    fn take(&mut self, identity: &str, now: Instant) -> Look {
        while let Some((since, old)) = self.order.front()
            && now.saturating_duration_since(*since) >= DUPLICATE_WINDOW
        {
            self.known.remove(old);
            self.order.pop_front();
        }
        if self.known.contains(identity) {
            return Look::Duplicate;
        }
        if let Some((since, _)) = self.order.front()
            && self.order.len() >= TAKEN_MAX
        {
            let age = now.saturating_duration_since(*since);
            return Look::Full(DUPLICATE_WINDOW.saturating_sub(age));
        }
        let identity: Arc<str> = identity.into();
        self.known.insert(Arc::clone(&identity));
        self.order.push_back((now, identity));
        Look::New
    }
}

pub(super) fn deliver(core: &Arc<Core>, request: Request) -> Result<Delivery, RemoteError> {
    let id = request.id.clone().unwrap_or_default();
    let durable = &core.local_durable;
    if durable.waiting.fetch_add(1, Ordering::Relaxed) >= WAITING_MAX {
        durable.waiting.fetch_sub(1, Ordering::Relaxed);
        let reason = format!("{WAITING_MAX} durable messages wait already");
        return Err(refused(&request, reason, None));
    }
    let look = durable
        .taken
        .lock()
        .take(&request.identity(), Instant::now());
    if look != Look::New {
        durable.waiting.fetch_sub(1, Ordering::Relaxed);
    }
    match look {
        Look::New => {}
        Look::Duplicate => {
            let is_duplicate = true;
            return Ok(Delivery { id, is_duplicate });
        }
        Look::Full(wait) => {
            let reason = format!("{TAKEN_MAX} durable messages came within two minutes");
            return Err(refused(&request, reason, Some(wait)));
        }
    }
    let core = Arc::clone(core);
    tokio::spawn(async move {
        handle(&core, request).await;
        core.local_durable.waiting.fetch_sub(1, Ordering::Relaxed);
    });
    let is_duplicate = false;
    Ok(Delivery { id, is_duplicate })
}

fn refused(request: &Request, reason: String, retry_after: Option<Duration>) -> RemoteError {
    RemoteError::Refused {
        receiver: request.target.to_string(),
        message: request.message.to_string(),
        reason,
        retry_after,
    }
}

async fn handle(core: &Arc<Core>, mut request: Request) {
    // It is lost with the process alone, so nobody else could handle it sooner.
    request.timeout = Some(TIMEOUT_MAX);
    let pauses = ExponentialBuilder::default()
        .with_min_delay(PAUSE_MIN)
        .with_max_delay(PAUSE_MAX)
        .without_max_times();
    let mut pauses = pauses.build();
    let mut failures = 0;
    loop {
        let response = core.handle_durable(request.clone()).await;
        match response.outcome {
            Ok(_) => return core.meters.delivered(),
            Err(rejection) if !rejection.is_passing() => {
                failures += 1;
                if failures >= core.limits.failures_max {
                    return core.meters.dead_letter(rejection.label());
                }
            }
            Err(_) => {}
        }
        sleep(pauses.next().unwrap_or(PAUSE_MAX)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_taken_once_within_two_minutes() {
        let (mut taken, now) = (Taken::default(), Instant::now());
        assert_eq!(taken.take("a", now), Look::New);
        assert_eq!(taken.take("b", now), Look::New);
        let later = now + Duration::from_secs(119);
        assert_eq!(taken.take("a", later), Look::Duplicate);
        assert_eq!(taken.take("a", now + DUPLICATE_WINDOW), Look::New);
        assert_eq!((taken.known.len(), taken.order.len()), (1, 1));
    }

    #[test]
    fn none_is_forgotten_early() {
        let (mut taken, now) = (Taken::default(), Instant::now());
        for number in 0..TAKEN_MAX {
            assert_eq!(taken.take(&number.to_string(), now), Look::New);
        }
        let later = now + Duration::from_secs(90);
        let full = Look::Full(Duration::from_secs(30));
        assert_eq!(taken.take("one more", later), full);
        assert_eq!(taken.take("0", later), Look::Duplicate);
    }
}
