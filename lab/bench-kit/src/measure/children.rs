//! CPU time of programs that this one started and that have ended.

use std::time::Duration;

use anyhow::Context;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use serde::{Serialize, Serializer};

/// User and system time.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct ChildrenCpu {
    /// Seconds in user mode.
    #[serde(rename = "user_seconds", serialize_with = "seconds")]
    pub user: Duration,
    /// Seconds in the kernel.
    #[serde(rename = "system_seconds", serialize_with = "seconds")]
    pub system: Duration,
}

impl ChildrenCpu {
    /// Returns the time of all children that were waited for until now.
    ///
    /// # Errors
    /// If the kernel does not report it.
    pub fn now() -> anyhow::Result<Self> {
        let usage = getrusage(UsageWho::RUSAGE_CHILDREN).context("getrusage")?;
        Ok(Self {
            user: duration(usage.user_time()),
            system: duration(usage.system_time()),
        })
    }

    /// Returns the time of the children that were waited for since.
    #[must_use]
    pub fn until(self, later: Self) -> Self {
        Self {
            user: later.user.saturating_sub(self.user),
            system: later.system.saturating_sub(self.system),
        }
    }

    /// Returns user and system time together.
    #[must_use]
    pub fn total(self) -> Duration {
        self.user + self.system
    }
}

fn duration(time: TimeVal) -> Duration {
    let seconds = u64::try_from(time.tv_sec()).unwrap_or_default();
    let micros = u64::try_from(time.tv_usec()).unwrap_or_default();
    Duration::from_secs(seconds) + Duration::from_micros(micros)
}

fn seconds<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn the_time_of_a_child_is_known_when_it_has_ended() {
        let before = ChildrenCpu::now().expect("the kernel tells");
        let status = Command::new("true").status().expect("true can be run");
        let used = before.until(ChildrenCpu::now().expect("the kernel tells"));
        assert!(status.success());
        assert!(used.total() > Duration::ZERO);
    }
}
