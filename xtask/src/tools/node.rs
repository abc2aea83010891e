//! Modules of Node: undici, an HTTP client, playwright-core, which drives a browser, and axe-core,
//! which looks at pages as screen readers do.

use std::path::Path;

use anyhow::{Context, Result};

use super::Outcome;
use super::process::{bounded, run};
use super::root::{Root, Tool};

/// The last series that Node 18 of Debian 12 can run; it depends on nothing.
const UNDICI: &str = "undici@6.29.1";

/// It depends on nothing, and brings no browser: the distribution's Chromium is driven.
const PLAYWRIGHT: &str = "playwright-core@1.65.0";

/// It depends on nothing: one script, which runs in the page.
const AXE: &str = "axe-core@4.14.1";

pub(super) fn install(root: &Root) -> Result<Outcome> {
    let tool = Tool {
        directory: "node",
        pins: &format!("{UNDICI} {PLAYWRIGHT} {AXE}"),
        program: "node_modules/undici/index.js",
    };
    root.unless_stamped(&tool, npm_install)
}

fn npm_install(directory: &Path) -> Result<()> {
    run(bounded("npm")
        .args(["install", "--no-audit", "--no-fund", "--no-package-lock"])
        .arg("--prefix")
        .arg(directory)
        .args([UNDICI, PLAYWRIGHT, AXE]))
    .context("npm must install undici, playwright-core and axe-core for Node 18.17 or later")
}
