//! h2spec, the conformance suite of HTTP/2.

use std::path::Path;

use anyhow::{Context, Result};

use super::Outcome;
use super::process::{bounded, run};
use super::root::{Root, Tool};

const PINS: &str = concat!(
    include_str!("pins/h2spec/go.mod"),
    include_str!("pins/h2spec/go.sum")
);

pub(super) fn install(root: &Root) -> Result<Outcome> {
    let tool = Tool {
        directory: "bin",
        pins: PINS,
        program: "h2spec",
    };
    root.unless_stamped(&tool, build)
}

fn build(bin: &Path) -> Result<()> {
    let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tools/pins/h2spec");
    run(bounded("go")
        .args(["install", "github.com/summerwind/h2spec/cmd/h2spec"])
        .current_dir(module)
        .env("GOBIN", bin)
        .env("GOFLAGS", "-mod=readonly"))
    .context("Go 1.19 or later must build h2spec")
}
