//! Real foreign programs, each with its own directory and port, which end when they are dropped.

#![allow(dead_code, reason = "each test uses a part of it")]

pub(crate) mod app;
pub(crate) mod ferretdb;
#[path = "../../../../crates/greenroom-acme/tests/with_pebble/ports.rs"]
pub(crate) mod port;
pub(crate) mod program;
pub(crate) mod redis;
pub(crate) mod smtp;
pub(crate) mod wait;

use std::fs;
use std::path::{Path, PathBuf};

/// Returns a path below `target/tools`.
///
/// # Panics
/// If it is not there; the message says what installs it.
pub(crate) fn installed(relative: &str) -> PathBuf {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools");
    let path = tools.join(relative);
    let shown = path.display();
    assert!(
        path.exists(),
        "{shown} is not installed: run `cargo xtask tools`"
    );
    path
}

/// Returns the paths of what is in a directory; none if it is not there.
pub(crate) fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect()
}
