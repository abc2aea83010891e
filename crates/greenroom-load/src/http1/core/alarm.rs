//! The end of a wait for events.

use std::io;
use std::os::fd::OwnedFd;

use rustix::event::{Timespec, epoll};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

use crate::run::Clock;

/// A timer that ends waits on an epoll instance.
///
/// It is set once for a time, however many waits end before: the time-out of a wait would be a
/// timer of the kernel that is started and cancelled each time, and each of the two is dear on a
/// virtual machine.
#[derive(Debug)]
pub(super) struct Alarm {
    timer: OwnedFd,
    /// The time that it is set for, until it has rung.
    set_for: Option<u64>,
}

impl Alarm {
    /// The number that its events carry; no connection has it.
    const EVENT: u64 = u64::MAX;

    /// Creates a timer whose events this epoll instance reports.
    pub(super) fn new(epoll: &OwnedFd) -> io::Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        // Edge-triggered, it need not be read: setting it clears what it has to tell.
        let events = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(
            epoll,
            &timer,
            epoll::EventData::new_u64(Self::EVENT),
            events,
        )?;
        Ok(Self {
            timer,
            set_for: None,
        })
    }

    /// Rings at this time, if that is not over; false if it is.
    pub(super) fn set(&mut self, time: u64, clock: Clock) -> io::Result<bool> {
        let left = time.saturating_sub(clock.now());
        if left == 0 {
            return Ok(false);
        }
        if self.set_for != Some(time) {
            let value = Itimerspec {
                it_interval: Timespec::default(),
                it_value: timespec(left),
            };
            timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &value)?;
            self.set_for = Some(time);
        }
        Ok(true)
    }

    /// Returns true if this event is its own.
    pub(super) fn has_rung(&mut self, event: u64) -> bool {
        if event == Self::EVENT {
            self.set_for = None;
        }
        event == Self::EVENT
    }
}

fn timespec(nanoseconds: u64) -> Timespec {
    const PER_SECOND: u64 = 1_000_000_000;
    Timespec {
        tv_sec: i64::try_from(nanoseconds / PER_SECOND).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(nanoseconds % PER_SECOND).unwrap_or(0),
    }
}
