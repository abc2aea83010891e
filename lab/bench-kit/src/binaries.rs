//! Building and finding the programs under test.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use serde_json::Value;

/// Every program that a case may start, by name.
#[derive(Clone, Debug, Default)]
pub struct Binaries {
    by_name: HashMap<String, PathBuf>,
}

impl Binaries {
    /// Builds the program `greenroom`.
    ///
    /// # Errors
    /// If cargo fails.
    pub fn build_greenroom(&mut self) -> anyhow::Result<()> {
        let flags = ["-p", "greenroom-cli", "--bin", "greenroom"];
        self.cargo(repository(), "dist", &flags)
    }

    /// Returns the path of a program that was built.
    ///
    /// # Errors
    /// If it was not built.
    pub fn path(&self, name: &str) -> anyhow::Result<&Path> {
        let path = self
            .by_name
            .get(name)
            .with_context(|| format!("no program named {name} was built"))?;
        Ok(path)
    }

    fn cargo(&mut self, directory: &Path, profile: &str, packages: &[&str]) -> anyhow::Result<()> {
        eprintln!("building {} …", packages.join(" "));
        let output = Command::new("cargo")
            .current_dir(directory)
            .args([
                "build",
                "--profile",
                profile,
                "--locked",
                "--quiet",
                "--message-format=json-render-diagnostics",
            ])
            .args(packages)
            .stderr(Stdio::inherit())
            .output()
            .context("cannot run cargo")?;
        ensure!(
            output.status.success(),
            "cargo build {} failed",
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

/// Returns the folder of all benchmarks.
#[must_use]
pub fn lab_directory() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}
