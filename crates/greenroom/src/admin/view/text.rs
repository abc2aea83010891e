//! The view as text, for terminals.

use std::fmt::{self, Display, Formatter, Write};

use super::{Block, Facts, Kind, Section, Table, Tone, Value, View};

/// The columns that facts are broken at.
const WIDTH: usize = 100;
const INDENT: &str = "  ";

impl Display for View {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let Self {
            state,
            version,
            pid,
            uptime,
            ..
        } = self;
        writeln!(
            out,
            "greenroom {version}, process {pid}: {state}, up for {uptime}\n"
        )?;
        for warning in &self.warnings {
            let mark = mark(warning.tone);
            writeln!(
                out,
                "{mark} {}\n  {}\n  {}",
                warning.what,
                warning.advice,
                warning.url()
            )?;
        }
        if self.warnings.is_empty() {
            writeln!(out, "Nothing needs attention.")?;
        }
        writeln!(out, "\nThe last 5 minutes")?;
        for chart in &self.charts {
            let (title, now, sparks) = (chart.title, &chart.now, &chart.sparks);
            let highest = &chart.spans[0].highest;
            writeln!(
                out,
                "{INDENT}{title:<15}{now:>10}  {sparks:>60}  highest {highest}"
            )?;
        }
        self.sections
            .iter()
            .try_for_each(|section| section.fmt(out))
    }
}

impl Display for Section {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        writeln!(out, "\n{}", self.title)?;
        if self.blocks.is_empty() {
            writeln!(out, "{INDENT}{}", self.empty)?;
        }
        self.blocks.iter().try_for_each(|block| match block {
            Block::Facts(facts) => facts.fmt(out),
            Block::Table(table) => table.fmt(out),
        })
    }
}

impl Display for Facts {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        writeln!(out, "{INDENT}{}", self.title)?;
        let mut line = String::new();
        for fact in &self.facts {
            let name = fact.name.to_lowercase();
            let item = format!("{name} {}", shown(&fact.value));
            if !line.is_empty() && line.chars().count() + item.chars().count() + 6 > WIDTH {
                writeln!(out, "{INDENT}{INDENT}{line}")?;
                line.clear();
            }
            let between = if line.is_empty() { "" } else { ", " };
            write!(line, "{between}{item}")?;
        }
        writeln!(out, "{INDENT}{INDENT}{line}")
    }
}

impl Display for Table {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        writeln!(out, "{INDENT}{}", self.caption)?;
        let heads = self.columns.iter().map(|column| column.name.to_lowercase());
        let mut lines: Vec<Vec<String>> = vec![heads.collect()];
        lines.extend(self.rows.iter().map(|row| row.iter().map(shown).collect()));
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|index| lines.iter().map(|line| line[index].chars().count()).max())
            .map(Option::unwrap_or_default)
            .collect();
        for line in &lines {
            let mut text = String::new();
            for ((cell, column), width) in line.iter().zip(self.columns).zip(&widths) {
                match column.kind {
                    Kind::Number => write!(text, "  {cell:>width$}")?,
                    Kind::Text | Kind::Long => write!(text, "  {cell:<width$}")?,
                }
            }
            writeln!(out, "{INDENT}{}", text.trim_end())?;
        }
        if self.left_out > 0 {
            writeln!(out, "{INDENT}{INDENT}… and {} more", self.left_out)?;
        }
        Ok(())
    }
}

fn shown(value: &Value) -> String {
    format!("{}{}", value.text, mark(value.tone))
}

fn mark(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "",
        Tone::Warn => "!",
        Tone::Bad => "!!",
    }
}
