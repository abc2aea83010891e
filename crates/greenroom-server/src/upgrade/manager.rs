//! The messages to the service manager (`sd_notify(3)`), if `NOTIFY_SOCKET` names one.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use sd_notify::{NotifyState, notify, watchdog_enabled};

use super::{Part, Shared, UpgradeOutcome};
use crate::event_loop::TICK;

/// The shortest interval in which a loop must have turned. They turn each quarter of a second when
/// there is nothing to do.
const LOOK_MIN: Duration = Duration::from_millis(500);

/// The number of turns of a loop that has ended.
const ENDED: u64 = u64::MAX;

/// Returns `true` if systemd started this very process.
pub(super) fn surrounds() -> bool {
    let main = std::env::var("SYSTEMD_EXEC_PID").ok();
    main.and_then(|pid| pid.parse().ok()) == Some(std::process::id())
}

/// Tells that the server serves, and goes on to tell so while its loops turn, if it is asked to.
pub(super) fn serves(shared: &Arc<Shared>) {
    tell(&[NotifyState::Ready, NotifyState::Status("serving")]);
    watch(shared);
}

/// Tells that a next version starts.
pub(super) fn upgrades() {
    let status = NotifyState::Status("starting the next version");
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now, status]),
        Err(_) => tell(&[status]),
    }
}

/// Tells the outcome: which process serves.
pub(super) fn settled(outcome: &UpgradeOutcome) {
    match outcome {
        UpgradeOutcome::Serves { pid } => {
            // In one message: from then on those of this process count no more.
            let main = NotifyState::MainPid(*pid);
            tell(&[main, NotifyState::Ready, NotifyState::Status("serving")]);
        }
        UpgradeOutcome::Failed { reason } | UpgradeOutcome::Refused { reason } => {
            let line = reason.lines().next().unwrap_or_default();
            let status = format!("serving; the next version does not: {line}");
            tell(&[NotifyState::Ready, NotifyState::Status(&status)]);
        }
    }
}

/// Tells that the server drains.
pub(crate) fn stops() {
    tell(&[NotifyState::Stopping, NotifyState::Status("draining")]);
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = notify(states) {
        tracing::warn!(%error, "the service manager cannot be told; NOTIFY_SOCKET names it");
    }
}

/// Starts the thread that pings the service manager's watchdog, twice in its interval, as long as
/// each loop of each server has turned since the last look.
fn watch(shared: &Arc<Shared>) {
    let Some(interval) = watchdog_enabled() else {
        return;
    };
    let shared = Arc::downgrade(shared);
    let started = thread::Builder::new()
        .name("watchdog-ping".to_owned())
        .spawn(move || ping(&shared, (interval / 2).max(LOOK_MIN)));
    if let Err(error) = started {
        tracing::error!(%error, "the service manager's watchdog gets no pings");
    }
}

fn ping(shared: &Weak<Shared>, interval: Duration) {
    let mut seen = Vec::new();
    loop {
        thread::sleep(interval);
        let Some(parts) = shared.upgrade().map(|shared| shared.parts()) else {
            return;
        };
        if parts.is_empty() {
            return;
        }
        let now: Vec<u64> = parts.iter().flat_map(|part| part.turns()).collect();
        if have_turned(&seen, &now) {
            tell(&[NotifyState::Watchdog]);
        } else {
            tracing::error!("a loop stands still; the service manager's watchdog gets no ping");
        }
        seen = now;
    }
}

/// Counts the turns of a loop, until its runtime ends.
pub(super) async fn turn(part: Arc<Part>, index: usize) {
    let ended = Ended(part, index);
    loop {
        tokio::time::sleep(TICK).await;
        ended.0.turns[index].fetch_add(1, Ordering::Relaxed);
    }
}

/// Notes, when this is dropped, that a loop turns no more: in a drain those end that have no
/// connections left.
struct Ended(Arc<Part>, usize);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.turns[self.1].store(ENDED, Ordering::Relaxed);
    }
}

/// Returns `true` if each loop has turned. One that has ended, with its server, counts no more.
fn have_turned(before: &[u64], now: &[u64]) -> bool {
    before.len() != now.len() || before.iter().zip(now).all(|(before, now)| before != now)
}

impl Part {
    /// Returns how often each loop has turned that has not ended.
    fn turns(&self) -> Vec<u64> {
        let turns = self.turns.iter();
        let turns = turns.map(|turns| turns.load(Ordering::Relaxed));
        turns.filter(|turns| *turns != ENDED).collect()
    }
}

/// Fails if the variables of the service manager make no sense.
pub(super) fn check() -> io::Result<()> {
    match std::env::var("WATCHDOG_USEC") {
        Ok(text) if text.parse::<u64>().is_err() => Err(io::Error::other(format!(
            "WATCHDOG_USEC={text}: expected is a number of microseconds"
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_that_stands_still_is_found_out() {
        assert!(have_turned(&[], &[4, 5]));
        assert!(have_turned(&[4, 5], &[5, 7]));
        assert!(!have_turned(&[4, 5], &[5, 5]));
        assert!(have_turned(&[4, 5], &[5]));
    }
}
