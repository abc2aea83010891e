use serde::{Deserialize, Serialize};

use super::{OF_PROCESS, Upgrades, surroundings};

/// The upgrades of the process, as operators see them.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct UpgradeStatus {
    /// The state of this process.
    pub state: UpgradeState,
    /// This process.
    pub program: UpgradeProgram,
    /// The way in which next versions come.
    pub way: UpgradeWay,
    /// The reason why this process begins no upgrade, if it begins none.
    pub refusal: Option<String>,
    /// Under `start_server`: which of the processes that it has started this one is.
    pub generation: Option<u32>,
    /// The process of the next version, while it loads and once it serves.
    pub next_pid: Option<u32>,
    /// Time since the upgrade began that is under way.
    pub loading_micros: Option<u64>,
    /// The version before, while it drains.
    pub before: Option<DrainingVersion>,
    /// Upgrades of this process and of those before it, after which the next version served.
    pub serves: u64,
    /// The same, after which the next version did not serve.
    pub failed: u64,
    /// The same, which were not begun.
    pub refused: u64,
    /// The last of them, at most ten, the newest first. A process begins with those that the
    /// version before it knew, and with none if it was started in another way.
    pub records: Vec<UpgradeRecord>,
}

/// The version before, which drains.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct DrainingVersion {
    /// Its process.
    pub pid: u32,
    /// Time since this process serves in its place.
    pub micros: u64,
}

/// The state of a process, as to upgrades.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum UpgradeState {
    /// It finishes what is under way, and ends.
    Draining,
    /// It loads, and the version before serves.
    Loading,
    /// It serves.
    Serving,
    /// It serves, and its next version loads.
    Upgrading,
}

/// The way in which next versions of a process come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum UpgradeWay {
    /// It is process 1: its container is exchanged.
    Container,
    /// The program begins upgrades by itself, if at all.
    Program,
    /// systemd, by `systemctl reload`, or SIGUSR2.
    ServiceManager,
    /// SIGUSR2, as `greenroom upgrade` sends it.
    Signal,
    /// SIGHUP to Perl's `start_server`.
    StartServer,
}

/// A program in a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct UpgradeProgram {
    /// Its process.
    pub pid: u32,
    /// The version of Greenroom in it; `None` if it never said.
    pub version: Option<String>,
    /// The file that runs, links followed; `None` if the system does not say.
    pub path: Option<String>,
}

/// An upgrade that is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct UpgradeRecord {
    /// The second at which it was asked for, since 1970.
    pub begun_unix_seconds: u64,
    /// The version that served.
    pub from: UpgradeProgram,
    /// The next version, if it was started.
    pub to: Option<UpgradeProgram>,
    /// The outcome.
    pub result: UpgradeResult,
    /// The reason, if the next version does not serve: at most 1,024 bytes of it.
    pub reason: Option<String>,
    /// Time until the next version took over, or had failed.
    pub loading_micros: Option<u64>,
    /// Time from then on until the version before had ended. `None` while it drains, and if nobody
    /// was there any more to see its end.
    pub drain_micros: Option<u64>,
}

/// The outcome of an upgrade, without its reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum UpgradeResult {
    /// The next version did not start, and the one before went on.
    Failed,
    /// None was begun.
    Refused,
    /// The next version served.
    Serves,
}

impl UpgradeResult {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Serves, Self::Failed, Self::Refused];

    /// Returns its name in the status, and in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Refused => "refused",
            Self::Serves => "serves",
        }
    }
}

impl UpgradeStatus {
    /// Returns that of this process; `None` if no server of it takes part in upgrades.
    #[must_use]
    pub fn of_process() -> Option<Self> {
        let upgrades = OF_PROCESS.lock().clone();
        upgrades.map(|upgrades| upgrades.status())
    }

    /// Returns the number of upgrades with this outcome.
    #[must_use]
    pub const fn count(&self, result: UpgradeResult) -> u64 {
        match result {
            UpgradeResult::Failed => self.failed,
            UpgradeResult::Refused => self.refused,
            UpgradeResult::Serves => self.serves,
        }
    }
}

impl Upgrades {
    /// Returns what there is to tell of upgrades.
    #[must_use]
    pub fn status(&self) -> UpgradeStatus {
        let shared = &self.shared;
        let history = shared.history.shown();
        let state = if !*shared.opened.borrow() {
            UpgradeState::Loading
        } else if history.loading_micros.is_some() {
            UpgradeState::Upgrading
        } else if shared.is_serving() {
            UpgradeState::Serving
        } else {
            UpgradeState::Draining
        };
        let is_signalled = shared.is_signalled();
        UpgradeStatus {
            state,
            program: history.ours,
            way: surroundings::way(is_signalled),
            refusal: shared.refusal(),
            generation: surroundings::generation(),
            next_pid: history.next_pid,
            loading_micros: history.loading_micros,
            before: history.before,
            serves: history.totals.serves,
            failed: history.totals.failed,
            refused: history.totals.refused,
            records: history.records,
        }
    }
}
