//! undici, the HTTP client of Node.

use std::path::Path;

use anyhow::{Context, Result};

use super::Outcome;
use super::process::{bounded, run};
use super::root::{Root, Tool};

/// The last series that Node 18 of Debian 12 can run; it depends on nothing.
const PIN: &str = "undici@6.29.1";

pub(super) fn install(root: &Root) -> Result<Outcome> {
    let tool = Tool {
        directory: "node",
        pins: PIN,
        program: "node_modules/undici/index.js",
    };
    root.unless_stamped(&tool, npm_install)
}

fn npm_install(directory: &Path) -> Result<()> {
    run(bounded("npm")
        .args(["install", "--no-audit", "--no-fund", "--no-package-lock"])
        .arg("--prefix")
        .arg(directory)
        .arg(PIN))
    .context("npm must install undici for Node 18.17 or later")
}
