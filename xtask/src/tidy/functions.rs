//! No function over 70 lines, no file over 700.

use proc_macro2::TokenStream;

use super::tree::Tree;
use super::{Finding, rust};

/// From the signature to the closing brace, both included.
const FUNCTION_LINES_MAX: usize = 70;
pub(super) const FILE_LINES_MAX: usize = 700;

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.files_with("rs") {
        let lines = text.lines().count();
        if lines > FILE_LINES_MAX {
            let what = format!("a file of {lines} lines; at most {FILE_LINES_MAX} are allowed");
            findings.push(Finding::new(path, FILE_LINES_MAX + 1, what));
        }
        match text.parse::<TokenStream>() {
            Ok(source) => {
                let long = rust::functions(&source)
                    .into_iter()
                    .filter(|function| function.lines > FUNCTION_LINES_MAX);
                findings.extend(long.map(|function| {
                    let what = format!(
                        "function `{}` of {} lines; at most {FUNCTION_LINES_MAX} are allowed",
                        function.name, function.lines
                    );
                    Finding::new(path, function.line, what)
                }));
            }
            Err(error) => {
                let line = error.span().start().line;
                findings.push(Finding::new(path, line, format!("not Rust: {error}")));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function_of(lines: usize) -> String {
        let body = "    work();\n".repeat(lines - 2);
        format!("/// Works.\n#[inline]\npub fn long() {{\n{body}}}\n")
    }

    fn findings(text: &str) -> Vec<Finding> {
        check(&Tree::of([("crates/a/src/lib.rs", text)]))
    }

    #[test]
    fn a_function_of_70_lines_is_the_longest() {
        assert_eq!(findings(&function_of(70)), []);
        let text = "function `long` of 71 lines; at most 70 are allowed";
        let expected = [Finding::new("crates/a/src/lib.rs", 3, text)];
        assert_eq!(findings(&function_of(71)), expected);
    }

    #[test]
    fn a_file_of_700_lines_is_the_longest() {
        assert_eq!(findings(&"//! Long.\n".repeat(700)), []);
        let text = "a file of 701 lines; at most 700 are allowed";
        let expected = [Finding::new("crates/a/src/lib.rs", 701, text)];
        assert_eq!(findings(&"//! Long.\n".repeat(701)), expected);
    }

    #[test]
    fn what_is_not_rust_is_said_to_be_so() {
        let found = findings("fn main() {\n    (\n}\n");
        assert!(found[0].text.starts_with("not Rust"), "{found:?}");
    }
}
