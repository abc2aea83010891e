//! The page `docs/from-axum.md`, generated below its mark from the list of differences.

use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

use crate::differences::{Difference, Seen, differences};

/// The mark. The text above it is written by hand.
const MARK: &str = "<!-- Made of tests/compat/src/differences by `make pages`. -->\n";
/// The environment variable that has the page written instead of compared.
const WRITE: &str = "GREENROOM_WRITE_PAGE";

/// Generates the page below its mark.
fn made() -> String {
    let mut page = String::from(MARK);
    for Difference {
        title,
        reason,
        seen,
    } in differences()
    {
        // Writing to a string cannot fail.
        let _written = writeln!(page, "\n### {title}\n\n{reason}\n");
        page.push_str("| case | axum | Greenroom |\n|---|---|---|\n");
        for Seen { cases, axum, ours } in *seen {
            let (cases, axum, ours) = (cases.join(", "), cell(axum), cell(ours));
            let _written = writeln!(page, "| {cases} | {axum} | {ours} |");
        }
    }
    page
}

fn cell(lines: &[&str]) -> String {
    if lines.is_empty() {
        return "–".to_owned();
    }
    let quoted: Vec<_> = lines
        .iter()
        .map(|line| format!("`` {} ``", line.replace('|', "\\|")))
        .collect();
    quoted.join("<br>")
}

#[test]
fn the_page_tells_the_differences() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/from-axum.md");
    let page = fs::read_to_string(&path).unwrap();
    let (by_hand, _) = page.split_once(MARK).expect("the page has its mark");
    let expected = format!("{by_hand}{}", made());
    if env::var_os(WRITE).is_some() {
        fs::write(&path, expected).unwrap();
        return;
    }
    assert!(
        page == expected,
        "docs/from-axum.md is not what the list of differences makes it: run `make pages`"
    );
}
