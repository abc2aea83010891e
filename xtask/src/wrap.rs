//! `cargo xtask wrap`: Markdown at most [`COLUMNS`] wide.
//!
//! Tables, headings, code and what has no blank in it stay as they are, and so does all that is
//! generated, from a line that begins with [`GENERATED`] on.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Characters in a line of text.
pub(crate) const COLUMNS: usize = 100;

/// Begins the part of a page that a program writes.
pub(crate) const GENERATED: &str = "<!-- Made of";

/// Wraps each of these files where a line is too long.
pub(crate) fn run(files: &[PathBuf]) -> Result<()> {
    for file in files {
        let name = file.display();
        let text = fs::read_to_string(file).with_context(|| format!("cannot read {name}"))?;
        let wrapped = wrapped(&text);
        if wrapped != text {
            fs::write(file, wrapped).with_context(|| format!("cannot write {name}"))?;
        }
    }
    Ok(())
}

/// A stretch of a page: lines that stay, or a paragraph or item that may be broken anew.
enum Block<'a> {
    Fixed(&'a str),
    Flowing(Vec<&'a str>),
}

/// The text with its long paragraphs and items broken anew. The others stay as they are.
pub(crate) fn wrapped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 50);
    for block in blocks(text) {
        match block {
            Block::Fixed(line) => push(&mut out, line),
            Block::Flowing(lines) if lines.iter().all(|line| fits(line)) => {
                for line in lines {
                    push(&mut out, line);
                }
            }
            Block::Flowing(lines) => flow(&mut out, &lines),
        }
    }
    out
}

/// The numbers of lines that could be shorter.
pub(crate) fn too_wide(text: &str) -> Vec<usize> {
    let mut number = 0;
    let mut found = Vec::new();
    for block in blocks(text) {
        match block {
            Block::Fixed(_) => number += 1,
            Block::Flowing(lines) => {
                for line in lines {
                    number += 1;
                    if !fits(line) && words(line.trim()).len() > 1 {
                        found.push(number);
                    }
                }
            }
        }
    }
    found
}

fn fits(line: &str) -> bool {
    line.chars().count() <= COLUMNS
}

fn push(out: &mut String, line: &str) {
    out.push_str(line);
    out.push('\n');
}

fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let (mut fence, mut is_generated) = (None, false);
    for line in text.lines() {
        let content = line.trim_start();
        is_generated |= line.starts_with(GENERATED);
        let marks = content.bytes().take_while(|byte| *byte == b'`').count();
        let opens_or_closes = marks >= 3 && fence.is_none_or(|open| marks >= open);
        if opens_or_closes {
            fence = if fence.is_some() { None } else { Some(marks) };
        }
        if opens_or_closes || fence.is_some() || is_generated || is_fixed(content) {
            blocks.push(Block::Fixed(line));
        } else if let (Some(Block::Flowing(lines)), 0) = (blocks.last_mut(), item_indent(line)) {
            lines.push(line);
        } else {
            blocks.push(Block::Flowing(vec![line]));
        }
    }
    blocks
}

fn is_fixed(content: &str) -> bool {
    let is_definition = content.starts_with('[') && content.contains("]: ");
    content.is_empty() || content.starts_with(['|', '#', '<', '>']) || is_definition
}

/// Returns the indent of an item's text; 0 if the line begins no item.
fn item_indent(line: &str) -> usize {
    let content = line.trim_start();
    let marker = content.split(' ').next().unwrap_or_default();
    let number = marker.trim_end_matches(['.', ')']);
    let is_numbered =
        number.len() + 1 == marker.len() && number.bytes().all(|byte| byte.is_ascii_digit());
    let is_item = content.contains(' ') && (["-", "*", "+"].contains(&marker) || is_numbered);
    let indent = line.len() - content.len() + marker.len() + 1;
    if is_item { indent } else { 0 }
}

fn flow(out: &mut String, lines: &[&str]) {
    let first = lines[0];
    let indent = match item_indent(first) {
        0 => first.len() - first.trim_start().len(),
        indent => indent,
    };
    let (head, body) = first.split_at(indent);
    let text = std::iter::once(body).chain(lines[1..].iter().copied());
    let text: Vec<_> = text.map(str::trim).collect();
    let mut line = head.to_owned();
    let mut is_begun = false;
    for word in words(&text.join(" ")) {
        let width = line.chars().count() + usize::from(is_begun) + word.chars().count();
        if is_begun && width > COLUMNS && !begins_a_block(&word) {
            push(out, &line);
            line = " ".repeat(indent);
            is_begun = false;
        }
        if is_begun {
            line.push(' ');
        }
        line.push_str(&word);
        is_begun = true;
    }
    push(out, &line);
}

/// True if the word would mean something else at the begin of a line.
fn begins_a_block(word: &str) -> bool {
    item_indent(&format!("{word} x")) > 0
        || is_fixed(word)
        || word.starts_with("```")
        || word.bytes().all(|byte| byte == b'=' || byte == b'-')
}

/// Splits at blanks outside of code.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let (mut word, mut code) = (String::new(), None);
    let mut rest = text;
    while let Some(sign) = rest.chars().next() {
        let marks = rest.bytes().take_while(|byte| *byte == b'`').count();
        let length = if marks > 0 { marks } else { sign.len_utf8() };
        if marks > 0 {
            code = match code {
                None if closes(&rest[marks..], marks) => Some(marks),
                Some(open) if open != marks => Some(open),
                _ => None,
            };
        }
        if sign == ' ' && code.is_none() {
            words.push(std::mem::take(&mut word));
        } else {
            word.push_str(&rest[..length]);
        }
        rest = &rest[length..];
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

/// True if code that so many marks have opened is ever closed.
fn closes(rest: &str, marks: usize) -> bool {
    let mut runs = rest.split(|sign| sign != '`').map(str::len);
    runs.any(|run| run == marks)
}

/// True if people write this Markdown file in lines: no report, and no table of contents, which is
/// a link in each line.
pub(crate) fn is_written(path: &Path) -> bool {
    let is_markdown = path.extension().is_some_and(|extension| extension == "md");
    is_markdown && !path.starts_with("lab/results") && !path.ends_with("SUMMARY.md")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_paragraphs_and_items_are_broken_and_mean_the_same() {
        let word = "word ".repeat(30);
        let text = format!("{word}\n\n- {word}\n  1. {word}- {word}\n");
        let wrapped = wrapped(&text);
        assert!(wrapped.lines().all(fits), "{wrapped}");
        let count = |text: &str| text.matches("word").count();
        assert_eq!(count(&wrapped), count(&text));
        assert!(wrapped.contains("\n\n- word"), "{wrapped}");
        assert!(wrapped.contains("\n  word"), "{wrapped}");
        assert!(wrapped.contains("\n  1. word"), "{wrapped}");
        // The dash in the midst of the item stays there.
        let dashes = wrapped
            .lines()
            .filter(|line| line.trim_start().starts_with('-'));
        assert_eq!(dashes.count(), 1, "{wrapped}");
        assert_eq!(super::wrapped(&wrapped), wrapped);
        assert_eq!(too_wide(&text), [1, 3, 4]);
    }

    #[test]
    fn tables_code_and_what_is_generated_stay() {
        let long = "a b ".repeat(50);
        let long = long.trim();
        for text in [
            format!("| {long} |\n"),
            format!("```text\n{long}\n```\n"),
            format!("{GENERATED} x. -->\n{long}\n"),
            format!("# {long}\n"),
            format!("`{}`\n", "ab ".repeat(50)),
        ] {
            assert_eq!(wrapped(&text), text);
            assert_eq!(too_wide(&text), [0; 0]);
        }
    }
}
