//! Text files: no marks of unfinished work, no stray whitespace, no dead links. Other files: only
//! pictures and recorded bytes.

use std::path::{Component, Path, PathBuf};

use pulldown_cmark::{Event, Options, Parser, Tag};

use super::Finding;
use super::tree::Tree;

/// Folders of bytes that were recorded or are input of tests, and stay as they are.
const RAW: &[&str] = &[
    "crates/greenroom-load/src/report/text/golden",
    "fuzz/corpus-seeds",
    "lab/results",
];

/// Extensions of files that need not be text.
const PICTURES: &[&str] = &["gif", "png"];

/// In two pieces, or this file would be found.
const MARKS: &[&str] = &[
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let texts = tree.files().filter(|(path, _)| !is_raw(path));
    texts
        .flat_map(|(path, text)| {
            let mut findings = check_lines(path, text);
            if path.extension().is_some_and(|extension| extension == "md") {
                findings.extend(check_links(tree, path, text));
            }
            findings
        })
        .chain(tree.others().filter_map(check_other))
        .collect()
}

fn is_raw(path: &Path) -> bool {
    RAW.iter().any(|folder| path.starts_with(folder))
}

fn check_other(path: &Path) -> Option<Finding> {
    let extension = path.extension().unwrap_or_default();
    let is_allowed = is_raw(path) || PICTURES.iter().any(|picture| extension == *picture);
    let what = "neither text nor a picture; what is made or fetched is not kept here";
    (!is_allowed).then(|| Finding::new(path, 1, what))
}

fn check_lines(path: &Path, text: &str) -> Vec<Finding> {
    let is_rust = path.extension().is_some_and(|extension| extension == "rs");
    let mut findings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let mut find = |what: String| findings.push(Finding::new(path, index + 1, what));
        if line.ends_with([' ', '\t']) {
            find("whitespace at the end of the line".to_owned());
        }
        if is_rust && line.contains('\t') {
            find("a tab; Rust is indented by spaces".to_owned());
        }
        if let Some(mark) = mark_in(line) {
            find(format!("`{mark}`; finish it, or open an issue for it"));
        }
    }
    findings
}

fn mark_in(line: &str) -> Option<&'static str> {
    let mut words = line.split(|sign: char| !sign.is_ascii_alphanumeric() && sign != '_');
    words.find_map(|word| MARKS.iter().find(|mark| **mark == word).copied())
}

fn check_links(tree: &Tree, path: &Path, text: &str) -> Vec<Finding> {
    let events = Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter();
    let links = events.filter_map(|(event, range)| match event {
        Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
            Some((dest_url, range.start))
        }
        _ => None,
    });
    links
        .filter(|(link, _)| !leads_somewhere(tree, path, link))
        .map(|(link, start)| {
            let line = text[..start].matches('\n').count() + 1;
            let what = format!("`{link}` leads nowhere; a relative link must name a file here");
            Finding::new(path, line, what)
        })
        .collect()
}

fn leads_somewhere(tree: &Tree, from: &Path, link: &str) -> bool {
    let target = link.split_once('#').map_or(link, |(target, _)| target);
    let has_scheme = target.split_once(':').is_some_and(|(scheme, _)| {
        scheme
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'+')
    });
    if target.is_empty() || has_scheme {
        return true;
    }
    let folder = from.parent().unwrap_or(Path::new(""));
    resolve(folder, target).is_some_and(|path| tree.holds(&path))
}

/// `None` for a path that leaves the repository.
fn resolve(folder: &Path, target: &str) -> Option<PathBuf> {
    let mut resolved = folder.to_owned();
    for component in Path::new(target).components() {
        match component {
            Component::Normal(name) => resolved.push(name),
            Component::ParentDir => resolved.pop().then_some(())?,
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(resolved)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(path: &str, text: &str) -> Vec<String> {
        let tree = Tree::of([(path, text), ("docs/map.md", ""), ("README.md", "")]);
        check(&tree).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn whitespace_at_the_end_and_tabs_are_found() {
        let found = texts("a.rs", "fn f() {}\n\tfn g() {}\nfn h() {} \n");
        assert_eq!(
            found,
            [
                "a.rs:2: a tab; Rust is indented by spaces",
                "a.rs:3: whitespace at the end of the line"
            ]
        );
        assert_eq!(texts("Makefile", "run:\n\tcargo run\n"), [""; 0]);
    }

    #[test]
    fn of_files_that_are_no_text_pictures_and_recorded_bytes_are_kept() {
        let paths = ["fuzz/corpus-seeds/head/1", "docs/page.png", "a.whl"];
        let found = paths.map(|path| check_other(Path::new(path)).is_some());
        assert_eq!(found, [false, false, true]);
    }

    #[test]
    fn marks_are_whole_words() {
        let [mark, ..] = MARKS else { unreachable!() };
        let found = texts("run.sh", &format!("# {mark}: later\nmktemp /tmp/XXXXXX\n"));
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("run.sh:1: "), "{found:?}");
    }

    #[test]
    fn recorded_bytes_stay_as_they_are() {
        assert_eq!(texts("fuzz/corpus-seeds/head/1", "GET / \t\n"), [""; 0]);
    }

    #[test]
    fn relative_links_lead_to_files() {
        let good =
            "[a](map.md#x) [b](../README.md) [c](https://example.org) [d](#here) [e](../docs)";
        assert_eq!(texts("docs/a.md", good), [""; 0]);
        let bad = "one\n\n[a](gone.md) ![b](/README.md)\n\n[c](../../out.md) [d]\n\n[d]: lost.md\n";
        let found = texts("docs/a.md", bad);
        let begins = |line: usize, link: &str| format!("docs/a.md:{line}: `{link}` leads nowhere");
        let expected = [
            (3, "gone.md"),
            (3, "/README.md"),
            (5, "../../out.md"),
            (5, "lost.md"),
        ];
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (text, (line, link)) in found.iter().zip(expected) {
            assert!(text.starts_with(&begins(line, link)), "{text}");
        }
    }
}
