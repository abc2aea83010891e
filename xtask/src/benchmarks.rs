//! `cargo xtask benchmarks`: the lower part of `docs/benchmarks.md`, out of the newest results.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::wrap::{GENERATED, wrapped};

/// The page, from the repository's root.
pub(crate) const PAGE: &str = "docs/benchmarks.md";
/// The folder of the reports.
pub(crate) const RESULTS: &str = "lab/results";

/// Kinds of reports, in the order of the page: the end of a file's name after its date.
const KINDS: [(&str, &str); 14] = [
    ("isolation", "Isolation"),
    (
        "isolation-fairness",
        "Isolation: fairness, pages, bursts, bodies",
    ),
    ("http", "The HTTP engine"),
    ("http-2", "The HTTP engine, a second run"),
    ("drain", "Drains beside peers"),
    ("upgrade", "Upgrades under load"),
    ("upgrade-2", "Upgrades under load: HTTP/3, start_server"),
    ("edge", "The edge: TLS, files, forwarding"),
    ("actors", "Actors and messages"),
    ("asks", "What an ask costs"),
    ("psgi", "Perl applications"),
    ("load", "The load generator"),
    ("social", "The social network"),
    ("cluster", "Beyond one machine"),
];

/// Length of `2026-11-22`.
const DATE_BYTES: usize = 10;
/// The words after date and time in a report of `make lab`.
const DATED: &str = " UTC, commit ";

/// Reports by date; of one day that of `make lab`, which has no date in its name, is the newer.
type Reports<'a> = BTreeMap<(&'a str, bool), (&'a str, &'a str)>;

/// Writes the page of the repository at `root`.
pub(crate) fn run(root: &Path) -> Result<()> {
    let mut reports = Vec::new();
    for entry in fs::read_dir(root.join(RESULTS))? {
        let path = entry?.path();
        // Beside each report are its data and its figures.
        if path.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        reports.push((name.into_owned(), fs::read_to_string(&path)?));
    }
    let page = root.join(PAGE);
    let text = fs::read_to_string(&page).with_context(|| format!("cannot read {PAGE}"))?;
    let made = with_reports(&text, reports.iter().map(|(name, text)| (&**name, &**text)))?;
    fs::write(page, made).with_context(|| format!("cannot write {PAGE}"))
}

/// The page with its lower part made anew of these reports, by their files' names: `DATE-KIND.md`,
/// and `NAME.md` of an experiment, which may be of a known kind, too.
pub(crate) fn with_reports<'a>(
    page: &str,
    reports: impl Iterator<Item = (&'a str, &'a str)>,
) -> Result<String> {
    let mut kinds: BTreeMap<&str, Reports<'_>> = BTreeMap::new();
    for (name, text) in reports {
        let (kind, date, is_undated) = kind_and_date(name, text)?;
        let reports = kinds.entry(kind).or_default();
        reports.insert((date, is_undated), (name, text));
    }
    let Some((written, _)) = page.split_once(GENERATED) else {
        bail!("{PAGE} has no line that begins with `{GENERATED}`");
    };
    let mut sections = Vec::new();
    for (kind, title) in KINDS {
        sections.extend(kinds.remove(kind).map(|reports| (title, reports)));
    }
    for reports in kinds.into_values() {
        let title = reports
            .values()
            .next_back()
            .and_then(|(_, text)| text.lines().next());
        sections.push((title.unwrap_or_default().trim_start_matches("# "), reports));
    }
    let mut out = format!("{written}{GENERATED} {RESULTS} by `cargo xtask benchmarks`. -->\n\n");
    out.push_str("## Goals that were missed\n\n");
    for (title, reports) in &sections {
        let newest = reports.values().next_back();
        for missed in missed(newest.map_or("", |(_, text)| text)) {
            out.push_str(&wrapped(&format!("- {title}: {missed}\n")));
        }
    }
    out.push_str("\n## All figures\n");
    for (title, reports) in &sections {
        out.push_str(&section(title, reports));
    }
    Ok(out)
}

/// Returns the kind of a report, its date, and whether that is in the text instead of the name.
fn kind_and_date<'a>(name: &'a str, text: &'a str) -> Result<(&'a str, &'a str, bool)> {
    let known = |kind: &str| KINDS.iter().any(|(known, _)| *known == kind);
    let stem = name.strip_suffix(".md").unwrap_or(name);
    if name.starts_with(|first: char| first.is_ascii_digit()) {
        return match stem.split_at_checked(DATE_BYTES) {
            Some((date, kind)) if known(kind.trim_start_matches('-')) => {
                Ok((kind.trim_start_matches('-'), date, false))
            }
            _ => bail!(
                "{RESULTS}/{name} is of no known kind; name it DATE-KIND.md, and KIND in KINDS"
            ),
        };
    }
    let dated = text.lines().find(|line| line.contains(DATED));
    let date = dated.and_then(|line| line.get(..DATE_BYTES));
    let date = date.with_context(|| format!("{RESULTS}/{name} has no line with `DATE{DATED}…`"))?;
    Ok((stem, date, true))
}

/// Returns the goals that a report says were missed; with their cases where it does not name them.
fn missed(text: &str) -> Vec<String> {
    let mut case = "";
    let mut missed = Vec::new();
    for line in text.lines() {
        case = line.strip_prefix("## ").unwrap_or(case);
        let Some(goal) = line.strip_prefix("- ").map(str::trim_end) else {
            continue;
        };
        if goal.contains(": missed by ") {
            missed.push(goal.to_owned());
        } else if goal.ends_with(": **missed**") {
            missed.push(format!("{case}: {goal}"));
        }
    }
    missed
}

/// The newest report whole, and links to the older ones.
fn section(title: &str, reports: &Reports<'_>) -> String {
    let mut newest_first = reports.iter().rev();
    let Some((key, (name, text))) = newest_first.next() else {
        return String::new();
    };
    let link = |(date, _): &(&str, bool), name: &str| format!("[{date}](../{RESULTS}/{name})");
    let mut out = format!("\n### {title}\n\nMeasured {}", link(key, name));
    for (key, (name, _)) in newest_first {
        let _ = write!(out, "; before {}", link(key, name));
    }
    out.push_str(".\n\n");
    let pictures = format!("]({}-", name.trim_end_matches(".md"));
    let lines = text.lines().skip(1).skip_while(|line| line.is_empty()); // without the title
    let demoted = lines.map(|line| {
        let heading = line.trim_start_matches('#');
        let marks = if heading.len() < line.len() {
            "####"
        } else {
            ""
        };
        // Links between reports, and to pictures, are seen from the page now.
        let text = heading
            .trim_end()
            .replace("](20", &format!("](../{RESULTS}/20"))
            .replace(&pictures, &format!("](../{RESULTS}/{}", &pictures[2..]));
        format!("{marks}{text}\n")
    });
    out.push_str(&wrapped(&demoted.collect::<String>()));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# Benchmarks\n\n<!-- Made of old. -->\nold\n";

    #[test]
    fn the_newest_report_of_each_kind_is_taken() {
        let reports = [
            (
                "2026-01-02-http.md",
                "# HTTP\n\n## keepalive\n\n| a |\n|---|\n| 2 us |\n\n- CPU: missed by 1 us\n",
            ),
            ("2026-01-01-http.md", "# HTTP\n\n| 1 us |\n"),
        ];
        let made = with_reports(PAGE, reports.into_iter()).expect("they are known");
        assert!(
            made.starts_with("# Benchmarks\n\n<!-- Made of lab/results"),
            "{made}"
        );
        assert!(
            made.contains("#### keepalive\n\n| a |\n|---|\n| 2 us |\n"),
            "{made}"
        );
        assert!(made.contains("; before [2026-01-01]"), "{made}");
        assert!(
            made.contains("- The HTTP engine: CPU: missed by 1 us\n"),
            "{made}"
        );
        assert!(
            !made.contains("| 1 us") && !made.contains("old\n"),
            "{made}"
        );
        assert_eq!(
            with_reports(&made, reports.into_iter()).expect("again"),
            made
        );
    }

    #[test]
    fn a_report_of_make_lab_is_newer_than_one_of_its_day() {
        let text = "# Of the lab\n\n2026-01-02 03:04 UTC, commit abc.\n\n## keepalive\n\n\
            ![a](NAME-1.svg)\n\n- greenroom, `x`: goal <= 1, measured 2.00: **missed**\n";
        let (http, other) = (
            text.replace("NAME", "http"),
            text.replace("NAME", "weather"),
        );
        let reports = [
            ("2026-01-02-http.md", "# HTTP\n\nold\n"),
            ("http.md", &*http),
            ("weather.md", &*other),
        ];
        let made = with_reports(PAGE, reports.into_iter()).expect("they are known");
        let missed = "keepalive: greenroom, `x`: goal <= 1, measured 2.00: **missed**";
        for expected in [
            "- The HTTP engine: ",
            "- Of the lab: ",
            missed,
            "### Of the lab\n\nMeasured [2026-01-02](../lab/results/weather.md).",
            "(../lab/results/http.md); before [2026-01-02](../lab/results/2026-01-02-http.md)",
            "![a](../lab/results/weather-1.svg)",
        ] {
            assert!(made.contains(expected), "{expected}: {made}");
        }
        assert!(!made.contains("old\n"), "{made}");
    }

    #[test]
    fn unknown_kinds_are_errors() {
        for name in ["2026-01-01-weather.md", "http.md"] {
            let error = with_reports(PAGE, [(name, "")].into_iter()).expect_err(name);
            assert!(error.to_string().contains(name), "{error}");
        }
    }
}
