//! `cargo xtask tidy`: what the house asks of its files and neither compiler nor clippy checks.
//!
//! Each finding is one line, `path:line: what is wrong; what is allowed`, and makes the exit
//! status 1. A check is a function from a [`Tree`] of texts, and where it needs them the
//! [`Package`](workspace::Package)s, to findings; so its tests need neither disk nor cargo.

mod arrows;
mod comments;
mod dependencies;
mod docs;
mod functions;
mod pages;
mod perl;
mod rust;
mod text;
mod threats;
mod tree;
mod workspace;

use std::fmt::{self, Display, Formatter};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;

use tree::Tree;
use workspace::Workspace;

/// Something that is not as it should be, and where.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    path: PathBuf,
    line: usize,
    text: String,
}

impl Finding {
    fn new(path: impl AsRef<Path>, line: usize, text: impl Into<String>) -> Self {
        Self {
            path: path.as_ref().to_owned(),
            line,
            text: text.into(),
        }
    }
}

impl Display for Finding {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let Self { path, line, text } = self;
        write!(formatter, "{}:{line}: {text}", path.display())
    }
}

/// Checks the repository at `root`.
pub(crate) fn run(root: &Path) -> Result<ExitCode> {
    let tree = Tree::read(root)?;
    let workspace = Workspace::read(root, &tree)?;
    let findings = check(&tree, &workspace);
    report(&tree, &findings)?;
    Ok(if findings.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn check(tree: &Tree, workspace: &Workspace) -> Vec<Finding> {
    let packages = &workspace.packages;
    let mut findings: Vec<_> = [
        arrows::check(packages, &workspace.links),
        comments::check(tree),
        dependencies::check(tree, packages),
        docs::check(tree, packages),
        functions::check(tree),
        pages::check(tree),
        perl::check(tree),
        text::check(tree),
        threats::check(tree),
    ]
    .into_iter()
    .flatten()
    .collect();
    findings.sort();
    findings.dedup();
    findings
}

fn report(tree: &Tree, findings: &[Finding]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for finding in findings {
        writeln!(out, "{finding}")?;
    }
    let files = tree.files().count();
    let plural = if findings.len() == 1 { "" } else { "s" };
    writeln!(
        out,
        "tidy: {} finding{plural} in {files} files",
        findings.len()
    )
}
