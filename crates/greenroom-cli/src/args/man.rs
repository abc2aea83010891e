//! The manual pages in `packaging/man`, made of the definition of the flags.

use std::collections::BTreeMap;
use std::fs;

use clap::CommandFactory;
use clap_mangen::Man;

use super::Args;
use super::page::{assert_made, root};

const FOLDER: &str = "packaging/man";

/// Returns the pages by their files' names: one for each command, those below it included.
fn pages() -> BTreeMap<String, String> {
    let mut command = Args::command();
    command.build();
    let mut pages = BTreeMap::new();
    add(&command, "greenroom", &mut pages);
    pages
}

fn add(command: &clap::Command, name: &str, pages: &mut BTreeMap<String, String>) {
    let mut shown = command.clone().display_name(name.to_owned());
    if shown.find_subcommand("help").is_some() {
        // It has no page.
        shown = shown.mut_subcommand("help", |help| help.hide(true));
    }
    let mut page = Vec::new();
    let written = Man::new(shown).title(name).render(&mut page);
    written.expect("a page is written to memory");
    let page = with_notes(&String::from_utf8(page).expect("the page is text"));
    let lines: Vec<&str> = page.lines().map(str::trim_end).collect();
    pages.insert(format!("{name}.1"), lines.join("\n") + "\n");
    for below in command.get_subcommands() {
        if below.get_name() != "help" && !below.is_hide_set() {
            add(below, &format!("{name}-{}", below.get_name()), pages);
        }
    }
}

/// Keeps the lines of what stands below the flags as they are: tables and examples.
fn with_notes(page: &str) -> String {
    let Some((above, notes)) = page.split_once("\n.SH EXTRA\n") else {
        return page.to_owned();
    };
    let end = notes.find("\n.SH ").unwrap_or(notes.trim_end().len());
    let (notes, below) = notes.split_at(end);
    format!("{above}\n.SH NOTES\n.nf\n{notes}\n.fi{below}")
}

#[test]
fn the_page_tells_the_manual() {
    let pages = pages();
    for (name, page) in &pages {
        assert_made(&format!("{FOLDER}/{name}"), page);
    }
    let folder = fs::read_dir(root().join(FOLDER)).expect("the folder is there");
    let names = folder.map(|entry| entry.expect("it can be listed").file_name());
    let others = names.filter(|name| name.to_str().is_none_or(|name| !pages.contains_key(name)));
    let others: Vec<_> = others.collect();
    assert!(others.is_empty(), "no command has the pages {others:?}");
}
