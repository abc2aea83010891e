//! A section of the report that ab does not have.

use std::io::{self, Write};

/// A heading with lines below it, after an empty line.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) heading: String,
    pub(super) lines: Vec<String>,
}

impl Section {
    /// Creates a section, unless there are no lines.
    pub(super) fn new(heading: impl Into<String>, lines: Vec<String>) -> Option<Self> {
        (!lines.is_empty()).then(|| Self {
            heading: heading.into(),
            lines,
        })
    }

    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "\n{}", self.heading)?;
        for line in &self.lines {
            writeln!(out, "  {}", printable(line))?;
        }
        Ok(())
    }
}

/// Replaces control characters, which would command a terminal: much of a report's text comes from
/// the server.
pub(super) fn printable(text: &str) -> String {
    text.replace(char::is_control, "?")
}
