//! The upgrades that are over, of this process and of those before it: each process tells its next
//! version.

use std::collections::VecDeque;
use std::env;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use greenroom_quantiles::micros;
use parking_lot::Mutex;
use sd_notify::NotifyState;
use serde::{Deserialize, Serialize};

use super::UpgradeOutcome;
use super::status::{DrainingVersion, UpgradeProgram, UpgradeRecord, UpgradeResult};

/// Upgrades that are kept.
const RECORDS_MAX: usize = 10;
/// Bytes of a reason that are kept.
const REASON_BYTES_MAX: usize = 1_024;
/// Bytes that are told to the next version; the oldest upgrades are left out if there were more.
const TOLD_BYTES_MAX: usize = 8 * 1_024;

#[derive(Debug)]
pub(super) struct History(Mutex<State>);

#[derive(Debug)]
struct State {
    ours: UpgradeProgram,
    told: Told,
    /// The upgrade that is under way.
    begun: Option<Begun>,
    /// The next version: while it loads, and once it serves.
    next: Option<UpgradeProgram>,
    /// The version before, while it drains, and the time since when it does.
    before: Option<(u32, Instant)>,
}

#[derive(Clone, Copy, Debug)]
struct Begun {
    unix_seconds: u64,
    at: Instant,
}

/// The message to the next version. What a version does not know of it, it ignores.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Told {
    /// The upgrade to the version that is told.
    upgrade: Option<Upgrade>,
    totals: Totals,
    /// The oldest first.
    records: VecDeque<UpgradeRecord>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Upgrade {
    begun_unix_seconds: u64,
    /// By the clock of the machine that is never set, which is the same for both processes.
    begun_monotonic_micros: Option<u64>,
    from: UpgradeProgram,
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Totals {
    pub(super) serves: u64,
    pub(super) failed: u64,
    pub(super) refused: u64,
}

/// The part of a status that is known here.
pub(super) struct Shown {
    pub(super) ours: UpgradeProgram,
    pub(super) next_pid: Option<u32>,
    pub(super) loading_micros: Option<u64>,
    pub(super) before: Option<DrainingVersion>,
    pub(super) totals: Totals,
    pub(super) records: Vec<UpgradeRecord>,
}

impl History {
    /// Begins with what the version before has told.
    pub(super) fn new(told: Option<&str>) -> Self {
        let mut told = told.map_or_else(Told::default, |told| {
            serde_json::from_str(told).unwrap_or_else(|error| {
                tracing::warn!(%error, "what the version before tells of upgrades is unknown");
                Told::default()
            })
        });
        told.records.truncate(RECORDS_MAX);
        Self(Mutex::new(State {
            ours: ours(),
            told,
            begun: None,
            next: None,
            before: None,
        }))
    }

    /// Begins an upgrade.
    pub(super) fn begin(&self) {
        let mut state = self.0.lock();
        state.begun = Some(Begun::now());
        state.next = None;
    }

    /// Says that the next version was started as this process, from this file.
    pub(super) fn started(&self, pid: u32, path: &std::path::Path) {
        let path = path.canonicalize().ok();
        self.0.lock().next = Some(UpgradeProgram {
            pid,
            version: None,
            path: path.map(|path| path.display().to_string()),
        });
    }

    /// Ends the upgrade, or says that none was begun.
    pub(super) fn settle(&self, outcome: &UpgradeOutcome) {
        let mut state = self.0.lock();
        let is_begun = !matches!(outcome, UpgradeOutcome::Refused { .. });
        let begun = is_begun.then(|| state.begun.take()).flatten();
        let (result, reason) = match outcome {
            UpgradeOutcome::Serves { .. } => (UpgradeResult::Serves, None),
            UpgradeOutcome::Failed { reason } => (UpgradeResult::Failed, Some(reason)),
            UpgradeOutcome::Refused { reason } => (UpgradeResult::Refused, Some(reason)),
        };
        let next = is_begun.then(|| state.next.clone()).flatten();
        if result == UpgradeResult::Failed {
            state.next = None;
        }
        let record = UpgradeRecord {
            begun_unix_seconds: begun.unwrap_or_else(Begun::now).unix_seconds,
            from: state.ours.clone(),
            to: next,
            result,
            reason: reason.map(|reason| shortened(reason)),
            loading_micros: begun.map(|begun| micros(begun.at.elapsed())),
            drain_micros: None,
        };
        state.told.add(record);
    }

    /// Says that this process serves in place of the version before.
    pub(super) fn took_over(&self, pid: u32) {
        let mut state = self.0.lock();
        state.before = Some((pid, Instant::now()));
        let upgrade = state.told.upgrade.take();
        let loading = upgrade
            .as_ref()
            .and_then(|upgrade| monotonic_micros()?.checked_sub(upgrade.begun_monotonic_micros?));
        let begun = upgrade.as_ref().map(|upgrade| upgrade.begun_unix_seconds);
        let record = UpgradeRecord {
            begun_unix_seconds: begun.unwrap_or_else(unix_seconds),
            from: upgrade.map_or_else(|| UpgradeProgram::unknown(pid), |upgrade| upgrade.from),
            to: Some(state.ours.clone()),
            result: UpgradeResult::Serves,
            reason: None,
            loading_micros: loading,
            drain_micros: None,
        };
        state.told.add(record);
    }

    /// Says that the version before has ended, just now if it was seen.
    pub(super) fn drained(&self, is_seen: bool) {
        let mut state = self.0.lock();
        let Some((_, since)) = state.before.take() else {
            return;
        };
        if !is_seen {
            return;
        }
        let ours = state.ours.pid;
        let mut records = state.told.records.iter_mut().rev();
        let is_to_us = |to: &UpgradeProgram| to.pid == ours;
        if let Some(record) = records.find(|record| record.to.as_ref().is_some_and(is_to_us)) {
            record.drain_micros = Some(micros(since.elapsed()));
        }
    }

    /// Returns the message to the next version.
    pub(super) fn told(&self) -> String {
        let state = self.0.lock();
        let begun = state.begun.unwrap_or_else(Begun::now);
        let passed = micros(begun.at.elapsed());
        let mut told = state.told.clone();
        told.upgrade = Some(Upgrade {
            begun_unix_seconds: begun.unix_seconds,
            begun_monotonic_micros: monotonic_micros().and_then(|now| now.checked_sub(passed)),
            from: state.ours.clone(),
        });
        loop {
            // Numbers and texts are always JSON.
            let text = serde_json::to_string(&told).unwrap_or_default();
            if text.len() <= TOLD_BYTES_MAX || told.records.pop_front().is_none() {
                return text;
            }
        }
    }

    pub(super) fn shown(&self) -> Shown {
        let state = self.0.lock();
        let before = state.before.map(|(pid, since)| DrainingVersion {
            pid,
            micros: micros(since.elapsed()),
        });
        Shown {
            ours: state.ours.clone(),
            next_pid: state.next.as_ref().map(|next| next.pid),
            loading_micros: state.begun.map(|begun| micros(begun.at.elapsed())),
            before,
            totals: state.told.totals,
            records: state.told.records.iter().rev().cloned().collect(),
        }
    }
}

impl Told {
    fn add(&mut self, record: UpgradeRecord) {
        let total = match record.result {
            UpgradeResult::Failed => &mut self.totals.failed,
            UpgradeResult::Refused => &mut self.totals.refused,
            UpgradeResult::Serves => &mut self.totals.serves,
        };
        *total += 1;
        if self.records.len() == RECORDS_MAX {
            self.records.pop_front();
        }
        self.records.push_back(record);
    }
}

impl Begun {
    fn now() -> Self {
        Self {
            unix_seconds: unix_seconds(),
            at: Instant::now(),
        }
    }
}

impl UpgradeProgram {
    fn unknown(pid: u32) -> Self {
        Self {
            pid,
            version: None,
            path: None,
        }
    }
}

fn ours() -> UpgradeProgram {
    let path = env::current_exe().ok();
    UpgradeProgram {
        pid: std::process::id(),
        version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        path: path.map(|path| path.display().to_string()),
    }
}

fn shortened(reason: &str) -> String {
    let end = reason.floor_char_boundary(REASON_BYTES_MAX);
    reason[..end].trim_end().to_owned()
}

fn unix_seconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

fn monotonic_micros() -> Option<u64> {
    match NotifyState::monotonic_usec_now() {
        Ok(NotifyState::MonotonicUsec(micros)) => u64::try_from(micros).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fail(history: &History, reason: &str) {
        history.begin();
        history.settle(&UpgradeOutcome::Failed {
            reason: reason.to_owned(),
        });
    }

    #[test]
    fn the_next_version_knows_what_was_before() {
        let first = History::new(None);
        fail(&first, "not today\n");
        first.settle(&UpgradeOutcome::Refused {
            reason: "it is draining".to_owned(),
        });
        first.begin();
        let next = History::new(Some(&first.told()));
        assert_eq!(next.shown().records, first.shown().records);
        next.took_over(4_711);
        let shown = next.shown();
        assert_eq!(shown.before.map(|before| before.pid), Some(4_711));
        let results = shown.records.iter().map(|record| record.result);
        let expected = [
            UpgradeResult::Serves,
            UpgradeResult::Refused,
            UpgradeResult::Failed,
        ];
        assert!(results.eq(expected));
        assert_eq!(shown.records[0].from, first.shown().ours);
        assert!(shown.records[0].loading_micros.is_some());
        assert_eq!(shown.records[0].drain_micros, None);
        assert_eq!(shown.records[2].reason.as_deref(), Some("not today"));
        let Totals {
            serves,
            failed,
            refused,
        } = shown.totals;
        assert_eq!((serves, failed, refused), (1, 1, 1));

        next.drained(true);
        let shown = next.shown();
        assert!(shown.before.is_none() && shown.records[0].drain_micros.is_some());
    }

    #[test]
    fn few_are_kept_and_long_reasons_are_shortened() {
        let history = History::new(None);
        for number in 0..30 {
            fail(&history, &format!("{number} {}", "\u{1}".repeat(2_000)));
        }
        let shown = history.shown();
        assert_eq!(
            (shown.records.len(), shown.totals.failed),
            (RECORDS_MAX, 30)
        );
        let reason = shown.records[0].reason.as_deref().unwrap_or_default();
        assert!(reason.starts_with("29 ") && reason.len() <= REASON_BYTES_MAX);
        let told = history.told();
        assert!(told.len() <= TOLD_BYTES_MAX);
        let next = History::new(Some(&told)).shown();
        assert_eq!(next.totals.failed, 30);
        assert_eq!(next.records[0], shown.records[0], "the newest is told");
    }

    #[test]
    fn what_nobody_told_or_understands_is_no_history() {
        for told in [None, Some("{}"), Some(""), Some("{\"records\":1}")] {
            let history = History::new(told);
            assert!(history.shown().records.is_empty());
            history.took_over(4_711);
            let shown = history.shown();
            assert_eq!(shown.records[0].from, UpgradeProgram::unknown(4_711));
            assert_eq!(shown.records[0].loading_micros, None);
        }
    }
}
