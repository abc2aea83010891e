//! What a run leaves behind.

use std::fmt::{self, Write as _};
use std::fs;

use anyhow::Context;
use serde_json::{Value, json};

use crate::args::Args;
use crate::binaries::repository;
use crate::goal::Verdict;

/// The result of one case.
pub(crate) struct Report {
    pub(crate) case: &'static str,
    pub(crate) title: String,
    pub(crate) notes: Vec<String>,
    pub(crate) table: String,
    pub(crate) verdicts: Vec<Verdict>,
    pub(crate) samples: Value,
}

/// The results of all cases.
pub(crate) struct Run {
    pub(crate) machine: String,
    pub(crate) reports: Vec<Report>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "## {}: {}\n\n{}\n", self.case, self.title, self.table)?;
        for note in &self.notes {
            writeln!(f, "- {note}")?;
        }
        for verdict in &self.verdicts {
            writeln!(f, "- {verdict}")?;
        }
        Ok(())
    }
}

impl Run {
    pub(crate) fn new(machine: String) -> Self {
        Self {
            machine,
            reports: Vec::new(),
        }
    }

    /// Writes the files that were asked for.
    pub(crate) fn store(&self, args: &Args) -> anyhow::Result<()> {
        if let Some(path) = &args.json {
            let text = serde_json::to_string_pretty(&self.json(args)).context("JSON")?;
            fs::write(path, text).with_context(|| path.display().to_string())?;
        }
        if args.save {
            let directory = repository().join("lab/results");
            fs::create_dir_all(&directory).with_context(|| directory.display().to_string())?;
            let path = directory.join(format!("{}-http.md", jiff::Zoned::now().date()));
            fs::write(&path, self.markdown(args)).with_context(|| path.display().to_string())?;
            eprintln!("saved {}", path.display());
        }
        Ok(())
    }

    fn json(&self, args: &Args) -> Value {
        let case = |report: &Report| json!({ "case": report.case, "verdicts": report.verdicts, "samples": report.samples });
        json!({
            "machine": self.machine,
            "rounds": args.rounds(),
            "seconds": args.seconds(),
            "cases": self.reports.iter().map(case).collect::<Vec<_>>(),
        })
    }

    fn markdown(&self, args: &Args) -> String {
        let (rounds, seconds) = (args.rounds(), args.seconds());
        let mut text = format!(
            "# HTTP benchmark\n\n{}, {rounds} rounds of {seconds} s\n\n",
            self.machine
        );
        for report in &self.reports {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{report}");
        }
        text
    }
}
