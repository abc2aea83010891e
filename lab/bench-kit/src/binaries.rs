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
    /// Builds these packages of the lab.
    ///
    /// # Errors
    /// If cargo fails.
    pub fn build_lab(&mut self, packages: &[&str]) -> anyhow::Result<()> {
        let flags = packages.iter().flat_map(|package| ["-p", package]);
        self.cargo(lab_directory(), "release", &flags.collect::<Vec<_>>())
    }

    /// Builds the program `greenroom`.
    ///
    /// # Errors
    /// If cargo fails.
    pub fn build_greenroom(&mut self) -> anyhow::Result<()> {
        self.build_program("greenroom-cli", "greenroom")
    }

    /// Builds a program of the repository.
    ///
    /// # Errors
    /// If cargo fails.
    pub fn build_program(&mut self, package: &str, program: &str) -> anyhow::Result<()> {
        let flags = ["-p", package, "--bin", program];
        self.cargo(repository(), "dist", &flags)
    }

    /// Builds a program of one file in Go, beside a program that was built before.
    ///
    /// # Errors
    /// If `go` fails, or nothing named `beside` was built.
    pub fn build_go(&mut self, name: &str, source: &Path, beside: &str) -> anyhow::Result<()> {
        let path = self.path(beside)?.with_file_name(name);
        eprintln!("building {name} …");
        let status = Command::new("go")
            .args(["build", "-o"])
            .args([&path, source])
            .status()
            .context("cannot run go")?;
        ensure!(status.success(), "go build {} failed", source.display());
        self.by_name.insert(name.to_owned(), path);
        Ok(())
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
