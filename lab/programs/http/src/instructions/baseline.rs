//! The counts that the repository keeps, for comparison.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::Path;

use anyhow::Context;
use serde::{Deserialize, Serialize};

/// The change, in percent, from which it is marked.
pub(crate) const NOTABLE_PERCENT: f64 = 2.0;
/// The change to the worse, in percent, that fails.
pub(crate) const TOO_MUCH_PERCENT: f64 = 5.0;

/// Instructions of a request by case, and what they were counted with.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Baseline {
    /// The compiler and valgrind, as they name themselves: another one counts otherwise.
    counted_with: String,
    instructions: BTreeMap<String, f64>,
}

impl Baseline {
    /// Reads a file; one that is not there has no cases.
    ///
    /// # Errors
    /// If it cannot be read, or is no baseline.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        if !path.exists() {
            return Ok(Self::default());
        }
        let read = fs::read_to_string(path).map_err(anyhow::Error::from);
        let baseline = read.and_then(|text| Ok(serde_json::from_str(&text)?));
        baseline.with_context(|| path.display().to_string())
    }

    /// Writes it, as counted with these tools.
    pub(crate) fn write(&mut self, path: &Path, tools: &str) -> anyhow::Result<()> {
        tools.clone_into(&mut self.counted_with);
        let text = serde_json::to_string_pretty(self)? + "\n";
        fs::write(path, text).with_context(|| path.display().to_string())
    }

    /// Returns what it was counted with, if there is one and that is not these tools.
    pub(crate) fn counted_with_others(&self, tools: &str) -> Option<&str> {
        let others = Some(self.counted_with.as_str()).filter(|others| *others != tools);
        others.filter(|others| !others.is_empty())
    }

    /// Returns how far a case is from what it was; `None` for a new one.
    pub(crate) fn change(&self, case: &str, now: f64) -> Option<Change> {
        let before = *self.instructions.get(case)?;
        Some(Change { before, now })
    }

    pub(crate) fn put(&mut self, case: &str, now: f64) {
        self.instructions.insert(case.to_owned(), now.round());
    }
}

/// A case then and now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    pub(crate) before: f64,
    now: f64,
}

impl Change {
    fn percent(self) -> f64 {
        (self.now / self.before - 1.0) * 100.0
    }

    pub(crate) fn is_too_much(self) -> bool {
        self.percent() > TOO_MUCH_PERCENT
    }
}

impl fmt::Display for Change {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = self.percent();
        let mark = match percent {
            _ if percent > TOO_MUCH_PERCENT => " TOO MUCH",
            _ if percent > NOTABLE_PERCENT => " worse",
            _ if percent < -NOTABLE_PERCENT => " better",
            _ => "",
        };
        out.pad(&format!("{percent:+.1} %{mark}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(now: f64) -> Change {
        let mut baseline = Baseline::default();
        baseline.put("case", 1000.0);
        baseline.change("case", now).expect("it is there")
    }

    #[test]
    fn two_percent_are_marked_and_five_fail() {
        let shown = |now| (change(now).to_string(), change(now).is_too_much());
        assert_eq!(shown(1019.0), ("+1.9 %".into(), false));
        assert_eq!(shown(1021.0), ("+2.1 % worse".into(), false));
        assert_eq!(shown(1049.0), ("+4.9 % worse".into(), false));
        assert_eq!(shown(1051.0), ("+5.1 % TOO MUCH".into(), true));
        assert_eq!(shown(900.0), ("-10.0 % better".into(), false));
    }

    #[test]
    fn what_is_written_is_read_again() {
        let path = std::env::temp_dir().join(format!("instructions-{}", std::process::id()));
        let mut baseline = Baseline::read(&path).expect("it may be missing");
        assert!(baseline.change("case", 1.0).is_none());
        baseline.put("case", 12.4);
        baseline.write(&path, "these").expect("a folder for files");
        let read = Baseline::read(&path).expect("it is JSON");
        fs::remove_file(&path).expect("it was written");
        assert_eq!(read.counted_with_others("these"), None);
        assert_eq!(read.counted_with_others("newer"), Some("these"));
        let before = read.change("case", 1.0).expect("it is there").before;
        assert!((before - 12.0).abs() < 1e-9, "{before}");
    }
}
