//! `cargo xtask book`: the pages of `docs` as a book, and whether its links lead somewhere.
//!
//! The pages are copied to `target/book`, where links that leave the book lead to the repository
//! instead; mdBook makes HTML of that, below `html`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use ignore::{Walk, WalkBuilder};
use pulldown_cmark::{Event, Options, Parser, Tag};

/// The address at which files outside of the book can be read.
const REPOSITORY: &str = "https://github.com/greenroom-rs/greenroom/blob/main";

/// Makes the book of the repository at `root` with this program.
pub(crate) fn run(root: &Path, mdbook: &Path) -> Result<()> {
    let (docs, book) = (root.join("docs"), root.join("target/book"));
    if book.exists() {
        fs::remove_dir_all(&book)?;
    }
    for entry in Walk::new(&docs) {
        let entry = entry?;
        let path = entry.path().strip_prefix(&docs)?;
        if entry.path().is_dir() {
            fs::create_dir_all(book.join(path))?;
            continue;
        }
        let text = fs::read_to_string(entry.path())?;
        fs::write(book.join(path), within_book(path, &text))?;
    }
    let status = Command::new(mdbook).arg("build").arg(&book).status();
    let status = status.with_context(|| format!("cannot start {}", mdbook.display()))?;
    if !status.success() {
        bail!("mdbook ended with {status}");
    }
    check_links(&book.join("html"))
}

/// The page with the links that leave the book pointed to the repository.
fn within_book(page: &Path, text: &str) -> String {
    let events = Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter();
    let links = events.filter_map(|(event, range)| match event {
        Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
            let begin = range.start + text[range.clone()].rfind(&*dest_url)?;
            Some((begin, outside(page, &dest_url)?, dest_url.len()))
        }
        _ => None,
    });
    let mut out = text.to_owned();
    let links: BTreeMap<_, _> = links
        .map(|(begin, to, length)| (begin, (to, length)))
        .collect();
    for (begin, (to, length)) in links.into_iter().rev() {
        out.replace_range(begin..begin + length, &to);
    }
    out
}

/// Returns the target of a link that leaves the book.
fn outside(page: &Path, link: &str) -> Option<String> {
    if link.contains("://") || link.starts_with('#') {
        return None;
    }
    let mut path = PathBuf::from("docs").join(page.parent().unwrap_or(Path::new("")));
    for component in Path::new(link).components() {
        match component {
            Component::ParentDir => drop(path.pop()),
            other => path.push(other),
        }
    }
    (!path.starts_with("docs")).then(|| format!("{REPOSITORY}/{}", path.display()))
}

/// Each link within the book leads to a page of it, and to a heading that is there.
fn check_links(html: &Path) -> Result<()> {
    let mut pages = BTreeMap::new();
    // git ignores the book, as it does all of `target`.
    for entry in WalkBuilder::new(html).standard_filters(false).build() {
        let path = entry?.into_path();
        if path
            .extension()
            .is_some_and(|extension| extension == "html")
        {
            let text = fs::read_to_string(&path)?;
            pages.insert(path, text);
        }
    }
    let ids: BTreeMap<&Path, BTreeSet<&str>> = pages
        .iter()
        .map(|(path, text)| (path.as_path(), values(text, " id=\"").collect()))
        .collect();
    let mut dead = Vec::new();
    for (path, text) in &pages {
        let folder = path.parent().unwrap_or(html);
        for link in values(text, " href=\"").filter(|link| !link.contains(':')) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() {
                path.clone()
            } else {
                normal(&folder.join(file))
            };
            let is_there = match ids.get(target.as_path()) {
                Some(ids) => anchor.is_empty() || ids.contains(anchor),
                None => target.exists() && anchor.is_empty(),
            };
            if !is_there {
                dead.push(format!("{}: {link}", path.strip_prefix(html)?.display()));
            }
        }
    }
    if !dead.is_empty() {
        bail!("links that lead nowhere:\n{}", dead.join("\n"));
    }
    Ok(())
}

fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(normal.pop()),
            Component::CurDir => {}
            other => normal.push(other),
        }
    }
    normal
}

/// Returns what stands in quotes behind each of these.
fn values<'a>(text: &'a str, begin: &'a str) -> impl Iterator<Item = &'a str> {
    let rest = text.split(begin).skip(1);
    rest.filter_map(|rest| rest.split_once('"').map(|(value, _)| value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_that_leave_the_book_lead_to_the_repository() {
        let text = "[a](b.md#c) [d](../README.md#e) [f](https://example.org) | [g](../lab/h.md)\n";
        let expected = format!(
            "[a](b.md#c) [d]({REPOSITORY}/README.md#e) [f](https://example.org) | \
             [g]({REPOSITORY}/lab/h.md)\n"
        );
        assert_eq!(within_book(Path::new("a.md"), text), expected);
        let up = within_book(
            Path::new("decisions/1.md"),
            "[a](../b.md) [c](../../d.rs)\n",
        );
        assert_eq!(up, format!("[a](../b.md) [c]({REPOSITORY}/d.rs)\n"));
    }

    #[test]
    fn dead_links_of_the_book_are_named() {
        let html = tempfile::tempdir().expect("a directory");
        let write = |name, text| fs::write(html.path().join(name), text).expect("a file");
        write("b.html", "<h2 id=\"here\">");
        write(
            "a.html",
            "<a href=\"b.html#here\"><a href=\"#there\"><a href=\"c.html\">",
        );
        let error = check_links(html.path()).expect_err("two links lead nowhere");
        let expected = "links that lead nowhere:\na.html: #there\na.html: c.html";
        assert_eq!(error.to_string(), expected);
        write(
            "a.html",
            "<a href=\"b.html#here\"><a href=\"https://example.org/c\">",
        );
        check_links(html.path()).expect("all lead somewhere");
    }
}
