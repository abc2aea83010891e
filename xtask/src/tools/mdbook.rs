//! mdBook, which makes the book of `docs`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::Outcome;
use super::process::{bounded, run};
use super::root::{Root, Tool};

const VERSION: &str = "0.5.4";

/// Its path then, from the tools' directory.
const DIRECTORY: &str = "mdbook";
const PROGRAM: &str = "bin/mdbook";

/// Installs it unless it is there, and says where.
pub(super) fn path(root: &Root) -> Result<PathBuf> {
    install(root)?;
    Ok(root.join(DIRECTORY).join(PROGRAM))
}

fn install(root: &Root) -> Result<Outcome> {
    let tool = Tool {
        directory: DIRECTORY,
        pins: VERSION,
        program: PROGRAM,
    };
    root.unless_stamped(&tool, build)
}

/// Not optimised: it is sooner built, and the book is small.
fn build(directory: &Path) -> Result<()> {
    run(bounded("cargo")
        .args([
            "install",
            "mdbook",
            "--version",
            VERSION,
            "--locked",
            "--debug",
        ])
        .args(["--no-default-features", "--features", "search", "--root"])
        .arg(directory))
    .context("cargo must build mdbook")
}
