//! The servers that take part in a case.

use std::path::PathBuf;

use bench_kit::process::Launch;
use bench_kit::rounds::{self, AGAIN};

use super::Context;

/// The program to start.
#[derive(Clone, Debug)]
enum Program {
    /// Built for this run.
    Built(&'static str),
    /// Found on the search path, or given by its whole path.
    Found(PathBuf),
}

/// A server with the path that its load asks for.
#[derive(Clone, Debug)]
pub(crate) struct Contestant {
    pub(crate) name: String,
    program: Program,
    arguments: Vec<String>,
    listen_flag: Option<&'static str>,
    pub(crate) path: &'static str,
}

impl Contestant {
    pub(crate) fn new(program: &'static str, path: &'static str) -> Self {
        let name = program.to_owned();
        Self {
            name,
            program: Program::Built(program),
            arguments: Vec::new(),
            listen_flag: None,
            path,
        }
    }

    /// A program that is not part of this workspace.
    pub(crate) fn at(program: impl Into<PathBuf>, path: &'static str) -> Self {
        let program = program.into();
        let name = program.display().to_string();
        Self {
            name,
            program: Program::Found(program),
            arguments: Vec::new(),
            listen_flag: None,
            path,
        }
    }

    /// The demo application of this project, on one loop.
    pub(crate) fn demo(path: &'static str) -> Self {
        Self::new("greenroom", path)
            .arguments(["serve", "--loops", "1", "--no-access-log"])
            .listening_by("--listen")
            .named("greenroom serve")
    }

    /// Takes its address by this flag, instead of announcing one.
    pub(crate) fn listening_by(self, flag: &'static str) -> Self {
        Self {
            listen_flag: Some(flag),
            ..self
        }
    }

    pub(crate) fn named(self, name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..self
        }
    }

    pub(crate) fn arguments<A: Into<String>>(
        mut self,
        arguments: impl IntoIterator<Item = A>,
    ) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// The same server under another name.
    pub(crate) fn again(&self) -> Self {
        Self {
            name: format!("{}{AGAIN}", self.name),
            ..self.clone()
        }
    }

    pub(crate) fn launch(&self, context: &Context) -> anyhow::Result<Launch> {
        let program = match &self.program {
            Program::Built(name) => context.binaries.path(name)?,
            Program::Found(path) => path,
        };
        Ok(Launch::new(program)
            .arguments(&self.arguments)
            .listen_flag(self.listen_flag))
    }

    fn is_ours(&self) -> bool {
        matches!(self.program, Program::Built(name) if name.starts_with("greenroom"))
    }
}

impl rounds::Contestant for Contestant {
    fn name(&self) -> &str {
        &self.name
    }
}

/// Leaves out Greenroom's servers if the run does.
pub(crate) fn present(contestants: Vec<Contestant>, context: &Context) -> Vec<Contestant> {
    let absent = |contestant: &Contestant| context.peers_only && contestant.is_ours();
    contestants
        .into_iter()
        .filter(|contestant| !absent(contestant))
        .collect()
}
