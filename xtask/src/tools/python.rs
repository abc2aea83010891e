//! Python 3 environments: the HTTP clients and the mail sink of the tests, and the check of
//! Kubernetes' manifests.

use std::path::Path;

use anyhow::{Context, Result};

use super::Outcome;
use super::process::{bounded, run};
use super::root::{Root, Tool};

const PINS: &str = include_str!("pins/python.txt");

/// The interpreter, relative to the environment's directory.
pub(super) const PROGRAM: &str = "bin/python";

/// The check of Kubernetes' manifests, which carries the schemas of the API, and a Compose.
const PINS_OF_KUBERNETES: &str = include_str!("pins/kubernetes.txt");

pub(super) fn install(root: &Root) -> Result<Outcome> {
    let tool = Tool {
        directory: "python",
        pins: PINS,
        program: PROGRAM,
    };
    root.unless_stamped(&tool, |directory| make(directory, "python.txt"))
}

pub(super) fn install_kubernetes(root: &Root) -> Result<Outcome> {
    let tool = Tool {
        directory: "kubernetes",
        pins: PINS_OF_KUBERNETES,
        program: "bin/kubernetes-validate",
    };
    root.unless_stamped(&tool, |directory| make(directory, "kubernetes.txt"))
}

fn make(environment: &Path, list: &str) -> Result<()> {
    run(bounded("python3").args(["-m", "venv"]).arg(environment))
        .context("Python 3.11 or later must have its module venv")?;
    pip_install(environment, list)
}

/// Installs exactly the packages of the list, each with its version.
pub(super) fn pip_install(environment: &Path, list: &str) -> Result<()> {
    let pins = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tools/pins");
    run(bounded(environment.join(PROGRAM))
        .args(["-m", "pip", "install", "--quiet", "--no-deps"])
        .arg("--requirement")
        .arg(pins.join(list)))
}
