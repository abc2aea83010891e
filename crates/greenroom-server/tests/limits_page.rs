//! `docs/limits.md`: the table below its mark is made of the definitions of the limits.

use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

use greenroom_server::{Limits, Setting, Unit};

/// Text above it is written by hand, and so is text below the table's end.
const BEGIN: &str = "<!-- Made of the definitions of the limits by `make pages`. -->\n";
const END: &str = "<!-- End of what is made. -->\n";
/// The page is written, and not compared, if this is set.
const WRITE: &str = "GREENROOM_WRITE_PAGE";

fn table() -> String {
    let mut table = String::from("\n| limit | default | allowed | |\n|---|---|---|---|\n");
    for setting in Limits::settings() {
        let (name, default, allowed) = (setting.name(), setting.default_text(), setting.allowed());
        let text = text(setting);
        // Writing to a string cannot fail.
        let _written = writeln!(table, "| `{name}` | {default} | {allowed} | {text} |");
    }
    table.push('\n');
    table
}

/// The summary, and the first paragraph behind it.
fn text(setting: &Setting) -> String {
    let unit = match setting.unit() {
        Unit::Number => "",
        Unit::Size => " (a size)",
        Unit::Time => " (a time)",
    };
    let details: Vec<&str> = setting.details().collect();
    let details = details.join(" ");
    let summary = setting.summary();
    format!("**{summary}**{unit}. {details}")
        .trim_end()
        .to_owned()
}

#[test]
fn the_page_tells_the_limits() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/limits.md");
    let page = fs::read_to_string(&path).expect("the page can be read");
    let (before, rest) = page.split_once(BEGIN).expect("the page has its mark");
    let (_, after) = rest.split_once(END).expect("the table has an end");
    let expected = format!("{before}{BEGIN}{}{END}{after}", table());
    if env::var_os(WRITE).is_some() {
        fs::write(&path, expected).expect("the page can be written");
        return;
    }
    assert!(
        page == expected,
        "docs/limits.md is not what the limits make it: run `make pages`"
    );
}
