//! A timer with a precision of some microseconds.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};
use tokio::io::unix::AsyncFd;
use tokio::task::yield_now;

use crate::run::Clock;

const NANOSECONDS: i64 = 1_000_000_000;

/// A timer that wakes a task at a time of the run's clock. The runtime's own timers tick in
/// milliseconds.
#[derive(Debug)]
pub(super) struct Timer {
    clock: Clock,
    /// The kernel's monotonic clock at the run's begin, in nanoseconds.
    begin: i64,
    descriptor: Option<AsyncFd<OwnedFd>>,
}

impl Timer {
    /// Creates a timer; with `spin`, or without a timer of the kernel, it polls without pause.
    pub(super) fn new(clock: Clock, spin: bool) -> Self {
        // Read before the kernel's clock: a timer then fires a little after its time, never before
        // it.
        let since = clock.now().cast_signed();
        let now = clock_gettime(ClockId::Monotonic);
        Self {
            clock,
            begin: now.tv_sec * NANOSECONDS + now.tv_nsec - since,
            descriptor: if spin { None } else { timer().ok() },
        }
    }

    /// Waits until a time in nanoseconds since the run began; returns at once if it has passed.
    pub(super) async fn sleep_until(&self, time: u64) {
        match &self.descriptor {
            Some(timer) if self.arm(timer, time).is_ok() => self.fired(timer, time).await,
            _ => {
                while self.clock.now() < time {
                    yield_now().await;
                }
            }
        }
    }

    fn arm(&self, timer: &AsyncFd<OwnedFd>, time: u64) -> io::Result<()> {
        let time = self.begin.saturating_add_unsigned(time);
        let setting = Itimerspec {
            it_interval: Timespec::default(),
            it_value: Timespec {
                tv_sec: time / NANOSECONDS,
                tv_nsec: time % NANOSECONDS,
            },
        };
        timerfd_settime(timer.get_ref(), TimerfdTimerFlags::ABSTIME, &setting)?;
        Ok(())
    }

    async fn fired(&self, timer: &AsyncFd<OwnedFd>, time: u64) {
        while self.clock.now() < time {
            match timer.readable().await {
                // Arming it again clears the expiration count, so there is no need to read it.
                Ok(mut guard) => guard.clear_ready(),
                Err(_) => tokio::time::sleep(Duration::from_millis(1)).await,
            }
        }
    }
}

#[expect(
    deprecated,
    reason = "its successor is unsafe, for types whose descriptor may change or be closed; an \
        OwnedFd's cannot"
)]
fn timer() -> io::Result<AsyncFd<OwnedFd>> {
    let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
    AsyncFd::new(timerfd_create(TimerfdClockId::Monotonic, flags)?)
}
