//! The table of all keys in `docs/sites.md`, made of their definition.

use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

use greenroom_sites::keys;

const PAGE: &str = "../../docs/sites.md";
const BEGIN: &str = "<!-- Made of the definition of the keys by `make pages`. -->\n";
const END: &str = "<!-- Until here. -->\n";
/// If this is set, the page is written before it is compared.
const WRITE: &str = "GREENROOM_WRITE_PAGE";

/// Returns a table for each table of the file.
fn tables() -> String {
    let mut text = String::new();
    let mut table = String::new();
    let mut all: Vec<_> = keys()
        .into_iter()
        .map(|key| {
            let (table, name) = key.name.rsplit_once('.').expect("it is in a table");
            (table.to_owned(), name.to_owned(), key)
        })
        .collect();
    // A table's keys stand together, before those of the tables that are in it.
    let order: Vec<String> = all.iter().map(|(table, ..)| table.clone()).collect();
    all.sort_by_key(|(table, ..)| order.iter().position(|other| other == table));
    for (of, name, key) in all {
        if of != table {
            let title = format!("\n### `{of}`\n\n| key | value | default | |\n|---|---|---|---|\n");
            text.push_str(&title);
            table = of;
        }
        let default = match (key.is_required, &*key.default) {
            (true, _) => "needed".to_owned(),
            (false, "") => String::new(),
            (false, default) => format!("`{default}`"),
        };
        let form = key.form.replace('|', "\\|");
        // Writing to a string cannot fail.
        let _written = writeln!(text, "| `{name}` | {form} | {default} | {} |", key.text);
    }
    text
}

#[test]
fn the_page_tells_the_keys() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let page = fs::read_to_string(&path).expect("the page is there");
    let (before, rest) = page.split_once(BEGIN).expect("the tables begin");
    let (_, after) = rest.split_once(END).expect("the tables end");
    let made = format!("{before}{BEGIN}{}\n{END}{after}", tables());
    if env::var_os(WRITE).is_some() {
        fs::write(&path, &made).expect("the page can be written");
    }
    let page = fs::read_to_string(&path).expect("the page is there");
    assert!(
        page == made,
        "docs/sites.md is not what the keys make it: run `make pages`"
    );
}
