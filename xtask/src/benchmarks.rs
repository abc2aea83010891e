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
const KINDS: [(&str, &str); 13] = [
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
];

/// Length of `2026-11-22-`.
const DATE_BYTES: usize = 11;

/// Writes the page of the repository at `root`.
pub(crate) fn run(root: &Path) -> Result<()> {
    let mut reports = Vec::new();
    for entry in fs::read_dir(root.join(RESULTS))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        reports.push((name.into_owned(), fs::read_to_string(&path)?));
    }
    let page = root.join(PAGE);
    let text = fs::read_to_string(&page).with_context(|| format!("cannot read {PAGE}"))?;
    let made = with_reports(&text, reports.iter().map(|(name, text)| (&**name, &**text)))?;
    fs::write(page, made).with_context(|| format!("cannot write {PAGE}"))
}

/// The page with its lower part made anew of these reports, by their files' names.
pub(crate) fn with_reports<'a>(
    page: &str,
    reports: impl Iterator<Item = (&'a str, &'a str)>,
) -> Result<String> {
    let mut kinds: BTreeMap<&str, BTreeMap<&str, &str>> = BTreeMap::new();
    for (name, text) in reports {
        let kind = name
            .get(DATE_BYTES..)
            .and_then(|kind| kind.strip_suffix(".md"));
        match kind {
            Some(kind) if KINDS.iter().any(|(known, _)| *known == kind) => {
                kinds.entry(kind).or_default().insert(name, text);
            }
            _ => bail!(
                "{RESULTS}/{name} is of no known kind; name it DATE-KIND.md, and KIND in KINDS"
            ),
        }
    }
    let Some((written, _)) = page.split_once(GENERATED) else {
        bail!("{PAGE} has no line that begins with `{GENERATED}`");
    };
    let mut out = format!("{written}{GENERATED} {RESULTS} by `cargo xtask benchmarks`. -->\n\n");
    out.push_str("## Goals that were missed\n\n");
    for (kind, title) in KINDS {
        let newest = kinds.get(kind).and_then(BTreeMap::last_key_value);
        let lines = newest.map_or("", |(_, text)| text).lines();
        for missed in lines.filter(|line| line.starts_with("- ") && line.contains(": missed by ")) {
            let item = format!("- {title}: {}\n", missed[2..].trim_end());
            out.push_str(&wrapped(&item));
        }
    }
    out.push_str("\n## All figures\n");
    for (kind, title) in KINDS {
        if let Some(reports) = kinds.get(kind) {
            out.push_str(&section(title, reports));
        }
    }
    Ok(out)
}

/// The newest report whole, and links to the older ones.
fn section(title: &str, reports: &BTreeMap<&str, &str>) -> String {
    let mut newest_first = reports.iter().rev();
    let Some((name, text)) = newest_first.next() else {
        return String::new();
    };
    let link = |name: &str| format!("[{}](../{RESULTS}/{name})", &name[..DATE_BYTES - 1]);
    let mut out = format!("\n### {title}\n\nMeasured {}", link(name));
    for (name, _) in newest_first {
        let _ = write!(out, "; before {}", link(name));
    }
    out.push_str(".\n\n");
    let lines = text.lines().skip(1).skip_while(|line| line.is_empty()); // without the title
    let demoted = lines.map(|line| {
        let heading = line.trim_start_matches('#');
        let marks = if heading.len() < line.len() {
            "####"
        } else {
            ""
        };
        // Links between reports are seen from the page now.
        let text = heading
            .trim_end()
            .replace("](20", &format!("](../{RESULTS}/20"));
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
    fn unknown_kinds_are_errors() {
        for name in ["2026-01-01-weather.md", "http.md"] {
            let error = with_reports(PAGE, [(name, "")].into_iter()).expect_err(name);
            assert!(error.to_string().contains(name), "{error}");
        }
    }
}
