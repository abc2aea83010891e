//! The OpenTelemetry Collector, with a receiver of OTLP and an exporter that writes a file.

use std::path::Path;

use anyhow::{Context, Result};

use super::Outcome;
use super::process::{bounded, run};
use super::root::{Root, Tool};

const PINS: &str = concat!(
    include_str!("pins/otelcol/go.mod"),
    include_str!("pins/otelcol/go.sum"),
    include_str!("pins/otelcol/main.go")
);

pub(super) fn install(root: &Root) -> Result<Outcome> {
    let tool = Tool {
        directory: "otelcol",
        pins: PINS,
        program: "otelcol",
    };
    root.unless_stamped(&tool, build)
}

fn build(directory: &Path) -> Result<()> {
    let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tools/pins/otelcol");
    run(bounded("go")
        .args(["build", "-o"])
        .arg(directory.join("otelcol"))
        .arg(".")
        .current_dir(module)
        .env("CGO_ENABLED", "0")
        .env("GOFLAGS", "-mod=readonly"))
    .context("Go 1.26 or later must build the OpenTelemetry Collector")
}
