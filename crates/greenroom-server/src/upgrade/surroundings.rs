//! The program around this process, as far as it matters to upgrades.

use std::env;

use super::{STARTER, UpgradeWay, manager};

/// The variable in which `start_server` counts the processes that it has started.
const GENERATION: &str = "SERVER_STARTER_GENERATION";

/// Returns why a next version would not live where this process does.
pub(super) fn refusal() -> Option<String> {
    if std::process::id() == 1 {
        return Some(
            "this is process 1, with which its container would end: start it below an init"
                .to_owned(),
        );
    }
    if is_started_by_starter() {
        return Some("start_server starts next versions: send it SIGHUP".to_owned());
    }
    if manager::surrounds() && !has_manager() {
        return Some(
            "systemd would end the next version with this one: its unit needs Type=notify or \
             Type=notify-reload"
                .to_owned(),
        );
    }
    None
}

/// Returns the way in which next versions come here; `is_signalled` if SIGUSR2 begins upgrades.
pub(super) fn way(is_signalled: bool) -> UpgradeWay {
    if std::process::id() == 1 {
        UpgradeWay::Container
    } else if is_started_by_starter() {
        UpgradeWay::StartServer
    } else if manager::surrounds() || has_manager() && is_signalled {
        UpgradeWay::ServiceManager
    } else if is_signalled {
        UpgradeWay::Signal
    } else {
        UpgradeWay::Program
    }
}

/// Returns which of the processes that `start_server` has started this one is.
pub(super) fn generation() -> Option<u32> {
    env::var(GENERATION).ok()?.parse().ok()
}

fn is_started_by_starter() -> bool {
    env::var_os(STARTER).is_some()
}

fn has_manager() -> bool {
    env::var_os("NOTIFY_SOCKET").is_some()
}
