//! The programs under test: how they are built, and which are missing.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, bail, ensure};
use serde::Deserialize;
use serde_json::Value;

use crate::declare::{Contestant, Service};
use crate::words::{Words, lab};

/// The building of a program: by cargo, or by a command.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Build {
    /// Arguments of `cargo build`; the placeholder is the program that cargo then names.
    cargo: Option<String>,
    /// A command that makes `{out}`.
    run: Option<String>,
    #[serde(default = "default_directory")]
    directory: String,
    #[serde(default)]
    needs: Vec<String>,
    version: Option<String>,
}

/// All builds, and those that were made.
#[derive(Debug)]
pub(crate) struct Builds {
    known: BTreeMap<String, Build>,
    made: BTreeMap<String, Result<String, String>>,
}

impl Builds {
    /// Reads `lab/builds.toml`; programs that are given are not built.
    pub(crate) fn read(given: &[(String, String)]) -> anyhow::Result<Self> {
        let text = fs::read_to_string(lab().join("builds.toml")).context("lab/builds.toml")?;
        let given = given.iter().cloned();
        Ok(Self {
            known: toml::from_str(&text).context("lab/builds.toml")?,
            made: given.map(|(name, path)| (name, Ok(path))).collect(),
        })
    }

    /// Builds what a contestant needs.
    ///
    /// # Errors
    /// The reason why it cannot take part.
    pub(crate) fn prepare(&mut self, contestant: &Contestant) -> Result<(), String> {
        installed(&contestant.needs)?;
        let builds = contestant.builds.iter().chain(&contestant.build);
        builds
            .cloned()
            .collect::<Vec<_>>()
            .iter()
            .try_for_each(|name| self.make(name))
    }

    /// Builds what a service needs.
    ///
    /// # Errors
    /// The reason why it cannot run.
    pub(crate) fn prepare_service(&mut self, service: &Service) -> Result<(), String> {
        installed(&service.needs)?;
        service.build.iter().try_for_each(|name| self.make(name))
    }

    /// Sets the placeholders of all programs that were built.
    pub(crate) fn name_in(&self, words: &mut Words) {
        for (name, made) in &self.made {
            if let Ok(path) = made {
                words.set(name, path);
            }
        }
    }

    /// Returns the first line that the contestant's version command prints.
    pub(crate) fn version(&self, contestant: &Contestant) -> Option<String> {
        let builds = contestant.build.iter().chain(&contestant.builds);
        let mut known = builds.filter_map(|name| self.known.get(name)?.version.as_ref());
        let command = contestant.version.as_ref().or_else(|| known.next())?;
        let mut words = Words::common();
        self.name_in(&mut words);
        let command = words.command(command).ok()?;
        let output = Command::new(&command[0])
            .args(&command[1..])
            .output()
            .ok()?;
        // Some programs print it as an error.
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        text.lines()
            .find(|line| !line.trim().is_empty())
            .map(|line| line.trim().to_owned())
    }

    fn make(&mut self, name: &str) -> Result<(), String> {
        if !self.made.contains_key(name) {
            let made = match self.known.get(name) {
                Some(build) => build.make(name),
                None => Err(format!("lab/builds.toml has no [{name}]")),
            };
            self.made.insert(name.to_owned(), made);
        }
        self.made[name].as_ref().map(drop).map_err(Clone::clone)
    }
}

impl Build {
    fn make(&self, name: &str) -> Result<String, String> {
        installed(&self.needs)?;
        eprintln!("building {name} …");
        self.try_make(name)
            .map_err(|error| format!("cannot build {name}: {error:#}"))
    }

    fn try_make(&self, name: &str) -> anyhow::Result<String> {
        let mut words = Words::common();
        let out = lab().join("target/peers");
        fs::create_dir_all(&out).context("lab/target/peers")?;
        let out = out.join(name).display().to_string();
        words.set("out", &out);
        let directory = words.fill(&self.directory)?;
        match (&self.cargo, &self.run) {
            (Some(arguments), None) => cargo(&words.command(arguments)?, Path::new(&directory)),
            (None, Some(command)) => {
                let words = words.command(command)?;
                let status = Command::new(&words[0])
                    .args(&words[1..])
                    .current_dir(directory)
                    .stdout(Stdio::from(std::io::stderr()))
                    .status()
                    .with_context(|| format!("cannot run {}", words[0]))?;
                ensure!(status.success(), "{} ended with {status}", words.join(" "));
                Ok(out)
            }
            _ => bail!("it must have either `cargo` or `run`"),
        }
    }
}

fn cargo(arguments: &[String], directory: &Path) -> anyhow::Result<String> {
    let output = Command::new("cargo")
        .current_dir(directory)
        .args([
            "build",
            "--locked",
            "--quiet",
            "--message-format=json-render-diagnostics",
        ])
        .args(arguments)
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run cargo")?;
    ensure!(
        output.status.success(),
        "cargo build {} failed",
        arguments.join(" ")
    );
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let executable = |line: &str| {
        let message: Value = serde_json::from_str(line).ok()?;
        Some(message.get("executable")?.as_str()?.to_owned())
    };
    text.lines()
        .rev()
        .find_map(executable)
        .context("cargo built no program")
}

fn installed(programs: &[String]) -> Result<(), String> {
    let is_missing = |program: &&String| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        !std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
    };
    match programs.iter().find(is_missing) {
        Some(program) => Err(format!("{program} is not installed (cargo xtask peers)")),
        None => Ok(()),
    }
}

fn default_directory() -> String {
    "{lab}".to_owned()
}
