//! The files of a result: data, a page, and pictures.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::Context;

use crate::declare::Experiment;
use crate::plots::{self, Streams};
use crate::result::Outcome;
use crate::{summary, tables};

/// Writes `NAME.json`, `NAME.md` and `NAME-CASE-N.svg`.
///
/// # Errors
/// If a file cannot be written.
pub(crate) fn write(
    directory: &Path,
    experiment: &Experiment,
    outcome: &Outcome,
    streams: &Streams,
) -> anyhow::Result<()> {
    let name = &outcome.experiment;
    let put = |file: &str, text: &str| {
        let path = directory.join(file);
        fs::write(&path, text).with_context(|| path.display().to_string())
    };
    fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    put(
        &format!("{name}.json"),
        &(serde_json::to_string_pretty(outcome)? + "\n"),
    )?;
    let mut page = head(experiment, outcome)?;
    if !experiment.summary.is_empty() {
        let summary = summary::filled(experiment.summary.trim(), &outcome.cases);
        writeln!(page, "\n{summary}")?;
    }
    for case in &experiment.cases {
        if !outcome.cases.iter().any(|done| done.name == case.name) {
            continue;
        }
        write!(page, "\n## {}\n\n{}", case.name, paragraph(&case.text))?;
        writeln!(page, "{}", tables::of_case(case, outcome))?;
        for picture in plots::of_case(case, outcome, streams) {
            let file = format!("{name}-{}.svg", picture.name);
            put(&file, &picture.svg)?;
            writeln!(page, "\n![{}]({file})", picture.title)?;
        }
        page.push_str(&goals(outcome, &case.name));
    }
    put(&format!("{name}.md"), &page)
}

fn head(experiment: &Experiment, outcome: &Outcome) -> anyhow::Result<String> {
    let mut page = format!(
        "# {}\n\n{}\n\n",
        experiment.title,
        experiment.question.trim()
    );
    if !experiment.source.is_empty() {
        writeln!(
            page,
            "Source: {}.\n",
            experiment.source.trim_end_matches('.')
        )?;
    }
    page.push_str(&paragraph(&experiment.text));
    let machine = &outcome.machine;
    writeln!(
        page,
        "{} UTC, commit {}, {}, {} cores, Linux {}, {:.0} % busy at the start{}, {:.1} % of the \
         busy time stolen by the host.",
        outcome.started,
        machine.commit,
        machine.cpu,
        machine.cores,
        machine.kernel,
        machine.busy_percent,
        if machine.was_busy() {
            ": **the machine was not idle**"
        } else {
            ""
        },
        machine.stolen_percent
    )?;
    if outcome.quick {
        page.push_str("\n**A quick run: to see that everything works, not to quote.**\n");
    }
    page.push_str(
        "\nCells are medians of interleaved rounds, with the least and the most in brackets where \
         they differ.\n",
    );
    if !outcome.versions.is_empty() {
        page.push('\n');
    }
    for (contestant, version) in &outcome.versions {
        let label = &experiment.contestants[contestant].label;
        writeln!(page, "- {label}: `{version}`")?;
    }
    if !outcome.left_out.is_empty() {
        page.push('\n');
    }
    for (label, reason) in &outcome.left_out {
        writeln!(page, "- **Left out**: {label}: {reason}")?;
    }
    Ok(page)
}

fn goals(outcome: &Outcome, case: &str) -> String {
    let mine = outcome.cases.iter().filter(|one| one.name == case);
    let mut text = String::new();
    // Writing to a string cannot fail.
    for (case, row) in mine
        .clone()
        .flat_map(|case| case.rows.iter().map(move |row| (case, row)))
    {
        if let Some(why) = &row.missing {
            let _ = writeln!(text, "- {}{}: {why}", row.label, case.at());
        }
        if let Some(error) = row.errors.first() {
            let (label, at) = (&row.label, case.at());
            let (count, of) = (row.errors.len(), row.samples.len());
            let _ = writeln!(
                text,
                "- {label}{at} failed in {count} of {of} rounds: {error}"
            );
        }
    }
    for judged in mine.flat_map(|one| &one.goals) {
        let _ = writeln!(text, "- {judged}");
    }
    if text.is_empty() {
        text
    } else {
        format!("\n{text}")
    }
}

fn paragraph(text: &str) -> String {
    match text.trim() {
        "" => String::new(),
        text => format!("{text}\n\n"),
    }
}
