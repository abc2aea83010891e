//! Pebble, a certificate authority for tests that speaks ACME, and the DNS server that it asks.

use std::path::Path;

use anyhow::{Context, Result};

use super::Outcome;
use super::process::{bounded, run};
use super::root::{Root, Tool};

const PINS: &str = concat!(
    include_str!("pins/pebble/go.mod"),
    include_str!("pins/pebble/go.sum")
);

pub(super) fn install(root: &Root) -> Result<Outcome> {
    let tool = Tool {
        directory: "pebble",
        pins: PINS,
        program: "pebble",
    };
    root.unless_stamped(&tool, build)
}

fn build(directory: &Path) -> Result<()> {
    let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tools/pins/pebble");
    let package = "github.com/letsencrypt/pebble/v2/cmd";
    run(bounded("go")
        .arg("install")
        .arg(format!("{package}/pebble-challtestsrv"))
        .arg(format!("{package}/pebble"))
        .current_dir(module)
        .env("GOBIN", directory)
        .env("GOFLAGS", "-mod=readonly"))
    .context("Go 1.24 or later must build Pebble")
}
