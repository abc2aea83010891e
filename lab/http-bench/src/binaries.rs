//! Building the programs under test, and knowing where they are.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use serde_json::Value;

/// Every program that a case may start, by name.
pub(crate) struct Binaries {
    by_name: HashMap<String, PathBuf>,
    pub(crate) peers_only: bool,
}

impl Binaries {
    pub(crate) fn build(peers_only: bool, with_demo: bool) -> anyhow::Result<Self> {
        let mut binaries = Self {
            by_name: HashMap::new(),
            peers_only,
        };
        binaries.cargo(
            lab_directory(),
            &["-p", "http-bench-load", "-p", "http-bench-peers"],
        )?;
        if !peers_only {
            binaries.cargo(lab_directory(), &["-p", "http-bench-ours"])?;
        }
        if !peers_only && with_demo {
            binaries.cargo(
                &repository(),
                &["-p", "greenroom-cli", "--bin", "greenroom"],
            )?;
        }
        Ok(binaries)
    }

    pub(crate) fn path(&self, name: &str) -> anyhow::Result<&Path> {
        let path = self
            .by_name
            .get(name)
            .with_context(|| format!("no program named {name} was built"))?;
        Ok(path)
    }

    fn cargo(&mut self, directory: &Path, packages: &[&str]) -> anyhow::Result<()> {
        eprintln!("building {} …", packages.join(" "));
        let output = Command::new("cargo")
            .current_dir(directory)
            .args([
                "build",
                "--release",
                "--quiet",
                "--message-format=json-render-diagnostics",
            ])
            .args(packages)
            .stderr(Stdio::inherit())
            .output()
            .context("cannot run cargo")?;
        ensure!(
            output.status.success(),
            "cargo build {} failed; --peers-only leaves Greenroom out",
            packages.join(" ")
        );
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            self.by_name.extend(executable(line));
        }
        Ok(())
    }
}

fn executable(message: &str) -> Option<(String, PathBuf)> {
    let message: Value = serde_json::from_str(message).ok()?;
    let path = PathBuf::from(message.get("executable")?.as_str()?);
    let name = path.file_name()?.to_str()?.to_owned();
    Some((name, path))
}

/// Where this package's own files are.
pub(crate) fn lab_directory() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The root of the project.
pub(crate) fn repository() -> PathBuf {
    lab_directory().join("../..")
}
