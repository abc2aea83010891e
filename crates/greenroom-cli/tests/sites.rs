//! `greenroom serve FILE.toml`, asked by a client of its own that sends bytes as they are.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[allow(dead_code, reason = "these tests use a part of it")]
mod authority;
#[allow(dead_code, reason = "these tests use a part of it")]
mod program;
mod site;

use std::process::Output;

#[path = "sites/applications.rs"]
mod applications;
#[path = "sites/around.rs"]
mod around;
#[path = "sites/commands.rs"]
mod commands;
#[path = "sites/examples.rs"]
mod examples;
#[path = "sites/files.rs"]
mod files;
#[path = "sites/reloading.rs"]
mod reloading;
#[path = "sites/routing.rs"]
mod routing;

fn text(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}
