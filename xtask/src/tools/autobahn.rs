//! Autobahn's fuzzing client of the WebSocket protocol, which was never ported from Python 2.7.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::Outcome;
use super::process::{bounded, run, succeeds};
use super::python::{self, pip_install};
use super::root::{Root, Tool, remove};

const PINS: &str = include_str!("pins/autobahn.txt");

/// The reason for which the step is skipped. It is also left beside the stamps, where the test
/// reads it.
const NO_PYTHON_2_7: &str = "no Python 2.7, which Autobahn needs: neither `python2.7` nor a 2.7 of \
                             pyenv (`pyenv install 2.7.18`) runs";

pub(super) fn install(root: &Root) -> Result<Outcome> {
    let note = root.join("stamps/autobahn.skipped");
    let Some(interpreter) = python_2_7() else {
        fs::write(&note, NO_PYTHON_2_7)
            .with_context(|| format!("cannot write {}", note.display()))?;
        return Ok(Outcome::Skipped(NO_PYTHON_2_7));
    };
    remove(&note, fs::remove_file)?;
    let tool = Tool {
        directory: "autobahn",
        pins: PINS,
        program: python::PROGRAM,
    };
    root.unless_stamped(&tool, |environment| {
        make_environment(root, &interpreter, environment)?;
        pip_install(environment, "autobahn.txt")
            .context("a C compiler must build some of Autobahn's dependencies")
    })
}

/// Makes an environment with the last virtualenv that can make one of Python 2.7 under Python 3.
fn make_environment(root: &Root, interpreter: &Path, environment: &Path) -> Result<()> {
    let python = root.join("python").join(python::PROGRAM);
    if !python.exists() {
        bail!("the step `python` must succeed first");
    }
    run(bounded(python)
        .args(["-m", "virtualenv", "--quiet", "--python"])
        .arg(interpreter)
        .arg(environment))
}

/// Returns the first interpreter that runs: pyenv's `python2.7` on the path is a script that fails
/// unless that version has been chosen.
fn python_2_7() -> Option<PathBuf> {
    let mut candidates = vec![PathBuf::from("python2.7")];
    candidates.extend(pyenv_interpreters());
    candidates
        .into_iter()
        .find(|python| succeeds(Command::new(python).arg("--version")))
}

fn pyenv_interpreters() -> Vec<PathBuf> {
    let root = std::env::var_os("PYENV_ROOT").map_or_else(
        || std::env::home_dir().unwrap_or_default().join(".pyenv"),
        PathBuf::from,
    );
    let versions = fs::read_dir(root.join("versions"));
    versions
        .into_iter()
        .flatten()
        .filter_map(Result::ok)
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("2.7"))
        .map(|entry| entry.path().join("bin/python2.7"))
        .collect()
}
