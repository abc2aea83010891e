//! The book's pages say what the code and the results say.

use std::collections::BTreeSet;
use std::path::Path;

use super::Finding;
use super::tree::Tree;
use crate::benchmarks::{PAGE as BENCHMARKS, RESULTS, with_reports};
use crate::wrap::{is_written, too_wide};

const README: &str = "README.md";
const README_LINES_MAX: usize = 120;
const MAKEFILE: &str = "Makefile";
const CONTRIBUTING: &str = "CONTRIBUTING.md";
const SUMMARY: &str = "docs/SUMMARY.md";

/// Units of what is measured: a number before one of them is a claim.
const UNITS: &[&str] = &["%", "us", "ms", "s", "ns", "B", "kB", "MB"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = check_widths(tree);
    findings.extend(check_benchmarks(tree));
    findings.extend(check_readme(tree));
    findings.extend(check_summary(tree));
    findings.extend(check_targets(tree));
    findings
}

fn check_widths(tree: &Tree) -> Vec<Finding> {
    let pages = tree.files_with("md").filter(|(path, _)| is_written(path));
    let text = "over 100 columns; `cargo xtask wrap FILE` breaks it";
    let findings = pages.flat_map(|(path, page)| {
        too_wide(page)
            .into_iter()
            .map(move |line| Finding::new(path, line, text))
    });
    findings.collect()
}

fn check_benchmarks(tree: &Tree) -> Option<Finding> {
    let page = tree.text(Path::new(BENCHMARKS))?;
    let reports = tree.files_with("md").filter_map(|(path, text)| {
        let name = path.strip_prefix(RESULTS).ok()?.to_str()?;
        Some((name, text))
    });
    let stale = match with_reports(page, reports) {
        Ok(made) if made == page => return None,
        Ok(_) => format!("not what {RESULTS} says; run `cargo xtask benchmarks`"),
        Err(error) => error.to_string(),
    };
    Some(Finding::new(BENCHMARKS, 1, stale))
}

/// One page, whose table says nothing that was not measured.
fn check_readme(tree: &Tree) -> Vec<Finding> {
    let (Some(readme), Some(page)) = (
        tree.text(Path::new(README)),
        tree.text(Path::new(BENCHMARKS)),
    ) else {
        return Vec::new();
    };
    let measured = numbers(
        page.split_once(crate::wrap::GENERATED)
            .map_or("", |(_, made)| made),
    );
    let mut findings = Vec::new();
    let lines = readme.lines().count();
    if lines > README_LINES_MAX {
        let text = format!("{lines} lines; one page has at most {README_LINES_MAX}");
        findings.push(Finding::new(README, lines, text));
    }
    for (index, line) in readme.lines().enumerate() {
        let cells = line.split('|').skip(2).filter(|cell| has_unit(cell));
        for number in cells
            .flat_map(numbers)
            .filter(|number| !measured.contains(number))
        {
            let text = format!("{number} stands in no table of {BENCHMARKS}");
            findings.push(Finding::new(README, index + 1, text));
        }
    }
    findings
}

fn has_unit(cell: &str) -> bool {
    let words: Vec<_> = cell
        .split([' ', '*'])
        .filter(|word| !word.is_empty())
        .collect();
    let is_number = |word: &str| word.bytes().any(|byte| byte.is_ascii_digit());
    words
        .windows(2)
        .any(|pair| is_number(pair[0]) && UNITS.contains(&pair[1]))
}

fn numbers(text: &str) -> BTreeSet<&str> {
    let words = text.split(|sign: char| !sign.is_ascii_digit() && sign != '.' && sign != ',');
    let words = words.map(|word| word.trim_matches(['.', ',']));
    words.filter(|word| !word.is_empty()).collect()
}

/// Each page is in the book's table of contents.
fn check_summary(tree: &Tree) -> Vec<Finding> {
    let Some(summary) = tree.text(Path::new(SUMMARY)) else {
        return Vec::new();
    };
    let pages = tree.files_with("md").filter_map(|(path, _)| {
        let name = path.strip_prefix("docs").ok()?.to_str()?;
        (path != Path::new(SUMMARY) && !summary.contains(&format!("]({name})"))).then_some(path)
    });
    let text = format!("not in {SUMMARY}, so nobody finds it");
    pages
        .map(|path| Finding::new(path, 1, text.clone()))
        .collect()
}

/// Each target of the Makefile is in the table that contributors read.
fn check_targets(tree: &Tree) -> Vec<Finding> {
    let (Some(makefile), Some(table)) = (
        tree.text(Path::new(MAKEFILE)),
        tree.text(Path::new(CONTRIBUTING)),
    ) else {
        return Vec::new();
    };
    let targets = makefile.lines().filter_map(|line| {
        let (target, _) = line.split_once(':')?;
        (line.contains(" ## ") && !line.starts_with('\t') && target != "help").then_some(target)
    });
    let missing = targets.filter(|target| !table.contains(&format!("\n| `make {target}` |")));
    let finding = |target| Finding::new(CONTRIBUTING, 1, format!("no row for `make {target}`"));
    missing.map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts<const N: usize>(files: [(&str, &str); N]) -> Vec<String> {
        let findings = check(&Tree::of(files));
        findings.iter().map(ToString::to_string).collect()
    }

    const RESULT: (&str, &str) = ("lab/results/2026-01-01-http.md", "# HTTP\n\n| 2.50 us |\n");

    fn made() -> String {
        let report = ("2026-01-01-http.md", RESULT.1);
        with_reports("<!-- Made of x -->", [report].into_iter()).expect("it is known")
    }

    #[test]
    fn numbers_in_the_readme_were_measured() {
        let readme = "| | Greenroom |\n|---|---|\n| a | **2.50 / 2.51 us** |\n| b 7 | c 9 d |\n";
        let found = texts([RESULT, (BENCHMARKS, &made()), (README, readme)]);
        assert_eq!(
            found,
            ["README.md:3: 2.51 stands in no table of docs/benchmarks.md"]
        );
    }

    #[test]
    fn a_readme_is_one_page() {
        let found = texts([RESULT, (BENCHMARKS, &made()), (README, &"a\n".repeat(121))]);
        assert_eq!(
            found,
            ["README.md:121: 121 lines; one page has at most 120"]
        );
    }

    #[test]
    fn stale_benchmarks_are_found() {
        let newer = ("lab/results/2026-01-02-http.md", "# HTTP\n\n| 3 us |\n");
        let found = texts([RESULT, newer, (BENCHMARKS, &made())]);
        assert!(
            found[0].contains("run `cargo xtask benchmarks`"),
            "{found:?}"
        );
    }

    #[test]
    fn pages_without_a_place_are_found() {
        let found = texts([
            (SUMMARY, "- [Limits](limits.md)\n"),
            ("docs/limits.md", ""),
            ("docs/lost.md", ""),
        ]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].starts_with("docs/lost.md:1: not in docs/SUMMARY.md"),
            "{found:?}"
        );
    }

    #[test]
    fn targets_without_a_row_are_found() {
        let makefile = "CARGO ?= cargo\nrun: ## Serve\n\ttrue\ntest: run ## Test\n";
        let found = texts([
            (MAKEFILE, makefile),
            (CONTRIBUTING, "# A\n| `make run` | b |\n"),
        ]);
        assert_eq!(found, ["CONTRIBUTING.md:1: no row for `make test`"]);
    }

    #[test]
    fn wide_lines_are_found() {
        let found = texts([("a.md", &"word ".repeat(30))]);
        assert!(
            found[0].starts_with("a.md:1: over 100 columns"),
            "{found:?}"
        );
    }
}
