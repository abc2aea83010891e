//! The threat model names tests that are there.

use std::path::Path;

use pulldown_cmark::{Event, Parser};

use super::Finding;
use super::tree::Tree;

const PAGE: &str = "SECURITY.md";
const HEADING: &str = "## Who may do what";

/// In each row of the section's tables the last cell names tests.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let Some(page) = tree.text(Path::new(PAGE)) else {
        return Vec::new();
    };
    let rows: Vec<_> = rows(page).collect();
    if rows.is_empty() {
        let text = format!("no table below `{HEADING}`");
        return vec![Finding::new(PAGE, 1, text)];
    }
    let findings = rows.into_iter().flat_map(|(line, row)| {
        let cell = row.trim_end().trim_end_matches('|');
        let names = tests(cell.rsplit('|').next().unwrap_or_default());
        if names.is_empty() {
            return vec![Finding::new(PAGE, line, "the row names no test")];
        }
        let unknown = names.into_iter().filter(|name| !is_there(tree, name));
        let finding = |name| Finding::new(PAGE, line, format!("there is no test `{name}`"));
        unknown.map(finding).collect()
    });
    findings.collect()
}

/// Returns the rows of the section's tables below their heads, with the numbers of their lines.
fn rows(page: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = page.lines().enumerate();
    let section = lines.skip_while(|(_, line)| *line != HEADING).skip(1);
    let section = section.take_while(|(_, line)| !line.starts_with("## "));
    let rows = section.filter(|(_, line)| line.starts_with('|'));
    let is_below = |line: &str| !line.starts_with("|---") && !line.contains("| shown by |");
    rows.filter(move |(_, line)| is_below(line))
        .map(|(index, line)| (index + 1, line))
}

fn tests(cell: &str) -> Vec<String> {
    let codes = Parser::new(cell).filter_map(|event| match event {
        Event::Code(name) => Some(name.into_string()),
        _ => None,
    });
    codes.collect()
}

/// Returns `true` if there is a test of this name, or a script that says these words of what it
/// tries.
fn is_there(tree: &Tree, name: &str) -> bool {
    let function = format!("fn {name}(");
    let in_rust = tree.files_with("rs").any(|(_, text)| {
        let marks = text.match_indices(&function);
        let is_test = |(at, _): (usize, &str)| {
            let above = text[..at].trim_end_matches("async ").trim_end();
            above.ends_with(']') && above[above.len().saturating_sub(200)..].contains("test")
        };
        let found: Vec<_> = marks.collect();
        found.into_iter().any(is_test)
    });
    in_rust
        || name
            .strip_prefix("make ")
            .is_some_and(|target| has_target(tree, target))
}

fn has_target(tree: &Tree, target: &str) -> bool {
    let makefile = tree.text(Path::new("Makefile")).unwrap_or_default();
    makefile.contains(&format!("\n{target}:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(row: &str) -> Vec<String> {
        let page = format!("# Security\n\n{HEADING}\n\n| may | shown by |\n|---|---|\n{row}\n");
        let tree = Tree::of([
            ("SECURITY.md", &page),
            (
                "tests/a.rs",
                "#[test]\nfn one() {}\n#[tokio::test]\nasync fn two() {}\nfn helper() {}\n",
            ),
            ("Makefile", ".PHONY: deb-test\ndeb-test: ## Try\n"),
        ]);
        check(&tree).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn tests_that_are_there_are_fine() {
        assert_eq!(texts("| read | `one`, `two` |"), [""; 0]);
        assert_eq!(texts("| read `x` | `make deb-test` |"), [""; 0]);
    }

    #[test]
    fn what_no_test_shows_is_found() {
        let unknown = "SECURITY.md:7: there is no test ";
        assert_eq!(texts("| read | `three` |"), [format!("{unknown}`three`")]);
        assert_eq!(texts("| read | `helper` |"), [format!("{unknown}`helper`")]);
        assert_eq!(
            texts("| read | |"),
            ["SECURITY.md:7: the row names no test"]
        );
    }
}
