//! `FerretDB`, a server that speaks `MongoDB`'s protocol and keeps its data in `SQLite`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::Outcome;
use super::process::{bounded, output_of, run};
use super::root::{Root, Tool};

const MODULE: &str = "github.com/FerretDB/FerretDB";

/// The version in `pins/ferretdb/go.mod`.
const VERSION: &str = "v1.24.0";

const PINS: &str = concat!(
    include_str!("pins/ferretdb/go.mod"),
    include_str!("pins/ferretdb/go.sum")
);

pub(super) fn install(root: &Root) -> Result<Outcome> {
    let tool = Tool {
        directory: "ferretdb",
        pins: PINS,
        program: "ferretdb",
    };
    root.unless_stamped(&tool, build)
}

fn build(directory: &Path) -> Result<()> {
    let sources = directory.join("sources");
    copy(&downloaded()?, &sources)?;
    note_version(&sources)?;
    run(bounded("go")
        .args(["build", "-mod=readonly", "-o"])
        .arg(directory.join("ferretdb"))
        .arg("./cmd/ferretdb")
        .current_dir(&sources))
    .context("Go 1.22 or later must build FerretDB")?;
    fs::remove_dir_all(&sources).context("cannot remove FerretDB's sources")
}

/// Returns the path of the sources in Go's module cache; their hash was checked against the pins.
fn downloaded() -> Result<PathBuf> {
    run(pinned_go().args(["mod", "download", MODULE])).context("Go must download FerretDB")?;
    let cache = output_of(pinned_go().args(["list", "-m", "-f", "{{.Dir}}", MODULE]))?;
    Ok(PathBuf::from(cache))
}

fn pinned_go() -> std::process::Command {
    let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tools/pins/ferretdb");
    let mut command = bounded("go");
    command.current_dir(module).env("GOFLAGS", "-mod=readonly");
    command
}

/// Copies the sources: the cache itself is read-only, and a file must be added.
fn copy(from: &Path, to: &Path) -> Result<()> {
    run(bounded("cp")
        .args(["--recursive", "--no-preserve=mode"])
        .arg(from)
        .arg(to))
}

/// Writes the file that `FerretDB`'s own build makes from git; without it the program panics when
/// it starts.
fn note_version(sources: &Path) -> Result<()> {
    let file = sources.join("build/version/version.txt");
    fs::write(&file, VERSION).with_context(|| format!("cannot write {}", file.display()))
}
