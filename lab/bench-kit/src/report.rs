//! The results of a run.

use std::fmt::{self, Write as _};
use std::fs;

use anyhow::Context;
use serde_json::{Value, json};

use crate::binaries::lab_directory;
use crate::goal::Verdict;
use crate::machine;
use crate::options::Keep;

/// The result of one case.
#[derive(Debug)]
pub struct Report {
    /// Its name on the command line.
    pub case: &'static str,
    /// The action that was measured.
    pub title: String,
    /// Explanations of the table.
    pub notes: Vec<String>,
    /// The table, in Markdown.
    pub table: String,
    /// A verdict for each goal.
    pub verdicts: Vec<Verdict>,
    /// All samples.
    pub samples: Value,
}

/// The results of all cases.
#[derive(Debug)]
pub struct Run {
    name: &'static str,
    title: &'static str,
    machine: String,
    reports: Vec<Report>,
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
    /// Prints the machine. The file of a saved run ends in `-NAME.md`, and begins with the title.
    ///
    /// # Errors
    /// If `/proc` cannot be read.
    pub fn begin(name: &'static str, title: &'static str) -> anyhow::Result<Self> {
        let machine = machine::describe()?;
        println!("{machine}\n");
        Ok(Self {
            name,
            title,
            machine,
            reports: Vec::new(),
        })
    }

    /// Prints the report of a case and keeps it.
    pub fn add(&mut self, report: Report) {
        println!("{report}");
        self.reports.push(report);
    }

    /// Writes the files that were asked for, of a measurement of any size.
    ///
    /// # Errors
    /// If one cannot be written.
    pub fn keep(&self, keep: &Keep, size: &str) -> anyhow::Result<()> {
        if let Some(path) = &keep.json {
            let text = serde_json::to_string_pretty(&self.json(size)).context("JSON")?;
            fs::write(path, text).with_context(|| path.display().to_string())?;
        }
        if keep.save {
            let directory = lab_directory().join("results");
            fs::create_dir_all(&directory).with_context(|| directory.display().to_string())?;
            let name = format!("{}-{}.md", jiff::Zoned::now().date(), self.name);
            let path = directory.join(name);
            fs::write(&path, self.markdown(size)).with_context(|| path.display().to_string())?;
            eprintln!("saved {}", path.display());
        }
        Ok(())
    }

    fn json(&self, size: &str) -> Value {
        let case = |report: &Report| {
            json!({
                "case": report.case,
                "verdicts": report.verdicts,
                "samples": report.samples,
            })
        };
        json!({
            "machine": self.machine,
            "size": size,
            "cases": self.reports.iter().map(case).collect::<Vec<_>>(),
        })
    }

    fn markdown(&self, size: &str) -> String {
        let (machine, warning) = self.machine.split_once('\n').unwrap_or((&self.machine, ""));
        let mut text = format!("# {}\n\n{machine}, {size}\n", self.title);
        if !warning.is_empty() {
            let _ = writeln!(text, "{warning}");
        }
        text.push('\n');
        for report in &self.reports {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{report}");
        }
        text
    }
}
