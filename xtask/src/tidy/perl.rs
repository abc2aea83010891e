//! Perl files: strict, with warnings, and no longer than others.

use std::path::Path;

use super::Finding;
use super::functions::FILE_LINES_MAX;
use super::tree::Tree;

/// Each Perl file says these, at the beginning of a line, or uses what says them for it.
const PRAGMAS: [&str; 2] = ["use strict;", "use warnings;"];

/// Modules that switch both on in whoever uses them.
const STRICT_MODULES: [&str; 2] = ["use Mojolicious::Lite", "use Mojo::Base"];

/// Applications are Perl files, too.
const EXTENSIONS: [&str; 4] = ["pl", "pm", "psgi", "t"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let files = EXTENSIONS
        .iter()
        .flat_map(|extension| tree.files_with(extension));
    files
        .flat_map(|(path, text)| {
            check_length(path, text)
                .into_iter()
                .chain(missing(path, text))
        })
        .collect()
}

fn check_length(path: &Path, text: &str) -> Option<Finding> {
    let lines = text.lines().count();
    let what = format!("a file of {lines} lines; at most {FILE_LINES_MAX} are allowed");
    (lines > FILE_LINES_MAX).then(|| Finding::new(path, FILE_LINES_MAX + 1, what))
}

fn missing(path: &Path, text: &str) -> Vec<Finding> {
    let says = |what: &str| {
        let mut lines = text.lines();
        lines.any(|line| line.starts_with("use ") && line.contains(what))
    };
    if STRICT_MODULES.into_iter().any(says) {
        return Vec::new();
    }
    let missing = PRAGMAS.into_iter().filter(|pragma| !says(pragma));
    missing
        .map(|pragma| Finding::new(path, 1, format!("no line with `{pragma}`")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(path: &str, text: &str) -> Vec<String> {
        let findings = check(&Tree::of([(path, text)]));
        findings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn both_pragmas_are_said() {
        let good = "package A;\n\nuse strict;\nuse warnings;\n\n1;\n";
        assert_eq!(texts("lib/A.pm", good), [""; 0]);
        assert_eq!(
            texts(
                "a.psgi",
                "# use strict;\nuse warnings;\nsub { [200, [], []] };\n"
            ),
            ["a.psgi:1: no line with `use strict;`"]
        );
        assert_eq!(texts("t/a.t", "").len(), 2);
        assert_eq!(texts("a.pl", "use strict; use warnings;\n"), [""; 0]);
        assert_eq!(texts("a.py", ""), [""; 0]);
    }

    #[test]
    fn a_module_may_say_them_for_its_user() {
        assert_eq!(
            texts("a.pl", "use Mojolicious::Lite -signatures;\n"),
            [""; 0]
        );
    }

    #[test]
    fn a_file_of_700_lines_is_the_longest() {
        let begin = "use strict;\nuse warnings;\n";
        let text = |lines: usize| format!("{begin}{}", "1;\n".repeat(lines - 2));
        assert_eq!(texts("a.pm", &text(700)), [""; 0]);
        assert_eq!(
            texts("a.pm", &text(701)),
            ["a.pm:701: a file of 701 lines; at most 700 are allowed"]
        );
    }
}
