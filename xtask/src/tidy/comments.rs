//! Rust has at most 100 columns, and the first line of a doc comment says in the indicative what
//! a thing is or does.

use std::path::Path;

use proc_macro2::TokenStream;

use super::tree::Tree;
use super::{Finding, rust};

const COLUMNS_MAX: usize = 100;

/// First words of questions.
const QUESTIONS: &[&str] = &[
    "How", "What", "When", "Where", "Whether", "Which", "Who", "Whose", "Why",
];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let files = tree.files_with("rs");
    files
        .flat_map(|(path, text)| check_file(path, text))
        .collect()
}

fn check_file(path: &Path, text: &str) -> Vec<Finding> {
    // What is not Rust is found elsewhere.
    let source = text.parse::<TokenStream>().unwrap_or_default();
    let within_literals = rust::lines_of_literals(&source);
    let mut findings = Vec::new();
    let mut is_first = true;
    for (line, content) in (1..).zip(text.lines()) {
        let doc = doc(content).filter(|_| !within_literals.contains(&line));
        if let Some(word) = doc.and_then(question).filter(|_| is_first) {
            let what = format!("a doc comment that asks `{word}`; it says what a thing is or does");
            findings.push(Finding::new(path, line, what));
        }
        is_first = !is_doc(content);
        if is_too_wide(content) && !within_literals.contains(&line) {
            findings.push(Finding::new(path, line, "over 100 columns"));
        }
    }
    findings
}

fn is_doc(line: &str) -> bool {
    ["///", "//!"]
        .iter()
        .any(|mark| line.trim_start().starts_with(mark))
}

/// Returns the text of a line of a doc comment.
fn doc(line: &str) -> Option<&str> {
    let line = line.trim_start();
    line.strip_prefix("/// ")
        .or_else(|| line.strip_prefix("//! "))
}

fn question(doc: &str) -> Option<&'static str> {
    let first = doc.split(|sign: char| !sign.is_alphabetic()).next()?;
    QUESTIONS.iter().find(|word| **word == first).copied()
}

/// True for a line that can be broken: an address cannot.
fn is_too_wide(line: &str) -> bool {
    line.chars().count() > COLUMNS_MAX && !line.contains("://")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(text: &str) -> Vec<(usize, String)> {
        let found = check(&Tree::of([("crates/a/src/lib.rs", text)]));
        let found = found
            .into_iter()
            .map(|finding| (finding.line, finding.text));
        found.collect()
    }

    #[test]
    fn the_first_line_of_a_doc_comment_is_no_question() {
        let text = "//! What it is.\n\n/// Why, oh why.\n/// How is fine here.\n///\n\
                    /// When it fails.\nfn f() {}\n";
        let lines: Vec<_> = findings(text).into_iter().map(|found| found.0).collect();
        assert_eq!(lines, [1, 3]);
        assert!(findings(text)[1].1.contains("`Why`"));
        assert_eq!(
            findings("/// Whatever it is.\n// What is this?\nfn f() {}\n"),
            []
        );
    }

    #[test]
    fn rust_has_100_columns_but_for_addresses_and_long_literals() {
        let wide = |end: &str| format!("// {}{end}\n", "x".repeat(97 - end.len()));
        assert_eq!(findings(&wide("")), []);
        let over = format!("{}y\n", wide("").trim_end());
        assert_eq!(findings(&over), [(1, "over 100 columns".to_owned())]);
        assert_eq!(findings(&format!("// https://{}\n", "x".repeat(120))), []);
        let literal = format!("const A: &str = \"\n{}\n\";\n", "x ".repeat(80));
        assert_eq!(findings(&literal), []);
    }
}
