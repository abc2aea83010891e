//! Modules of Node: undici, an HTTP client; playwright-core and puppeteer-core, which drive the
//! distribution's Chromium and Firefox; and axe-core, which looks at pages as screen readers do.
//!
//! playwright-core needs Node 20, as Debian 13 has it; of undici and puppeteer-core they are the
//! last series that older ones can run, too. None brings a browser. The lock names no registry, so
//! that any mirror will do.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::Outcome;
use super::process::{bounded, run};
use super::root::{Root, Tool};

const PACKAGE: &str = include_str!("pins/node/package.json");
const LOCK: &str = include_str!("pins/node/package-lock.json");
const PINS: &str = concat!(
    include_str!("pins/node/package.json"),
    include_str!("pins/node/package-lock.json")
);

pub(super) fn install(root: &Root) -> Result<Outcome> {
    let tool = Tool {
        directory: "node",
        pins: PINS,
        program: "node_modules/undici/index.js",
    };
    root.unless_stamped(&tool, npm_install)
}

fn npm_install(directory: &Path) -> Result<()> {
    for (name, text) in [("package.json", PACKAGE), ("package-lock.json", LOCK)] {
        fs::write(directory.join(name), text).with_context(|| format!("cannot write {name}"))?;
    }
    run(bounded("npm")
        .args(["ci", "--no-audit", "--no-fund", "--ignore-scripts"])
        .arg("--prefix")
        .arg(directory))
    .context("npm must install the modules of pins/node for Node 20 or later")
}
