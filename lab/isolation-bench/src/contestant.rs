//! The servers that take part.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Context as _;
use bench_kit::process::{Launch, Server};
use bench_kit::rounds::{self, AGAIN};
use bench_kit::tools::is_installed;
use bench_kit::{Binaries, lab_directory};

use crate::cases::Context;

/// The product: the demo application, with nothing said about any of its routes.
pub(crate) const OURS: &str = "greenroom serve";
/// The crate by itself, under the server that its users have already.
pub(crate) const LAYER: &str = "axum::serve + Placement::auto";
/// The same crates as in [`OURS`] around the handlers that axum has, for what the demo application
/// has no route for.
pub(crate) const SERVER: &str = "greenroom::serve";
/// The contestant that the limits of the peers' programs are measured against.
pub(crate) const AXUM_INLINE: &str = "axum, inline";
const GO_PROGRAM: &str = "isolation-go";
/// As many as axum's servers have threads.
const LOOPS: &str = "2";
/// Starman's processes, each for one request at a time.
const STARMAN_WORKERS: &str = "50";

/// The program to start.
#[derive(Clone, Debug)]
enum Program {
    /// Built for this run.
    Built(&'static str),
    /// Found on the search path.
    Found(&'static str),
}

/// A server and how it is started.
#[derive(Clone, Debug)]
pub(crate) struct Contestant {
    name: String,
    program: Program,
    arguments: Vec<OsString>,
    listen_flag: Option<&'static str>,
    core: Option<usize>,
    /// Adds big integers so slowly that the others' numbers are none for it.
    is_slow: bool,
}

impl Contestant {
    /// The demo application of this project.
    pub(crate) fn ours() -> Self {
        Self {
            listen_flag: Some("--listen"),
            ..Self::new(OURS, Program::Built("greenroom")).arguments(["serve", "--no-access-log"])
        }
    }

    /// An application behind `axum::serve`.
    pub(crate) fn axum(name: &str, application: &str) -> Self {
        let program = Program::Built("isolation-axum");
        Self::new(name, program).arguments(["--application", application])
    }

    /// An application behind Greenroom's server, on one loop.
    pub(crate) fn greenroom(name: &str, application: &str) -> Self {
        let program = Program::Built("isolation-greenroom");
        Self::new(name, program).arguments(["--application", application])
    }

    /// The handlers of [`Contestant::axum`] without any placement, behind Greenroom's server.
    pub(crate) fn server(name: &str, application: &str) -> Self {
        Self::greenroom(name, application).arguments(["--loops", LOOPS])
    }

    fn go() -> Self {
        Self::new("Go net/http", Program::Built(GO_PROGRAM))
    }

    fn node(name: &str, processes: &str) -> Self {
        let script = peers().join("node.js");
        let arguments = [script.into_os_string(), processes.into()];
        Self::new(name, Program::Found("node")).arguments(arguments)
    }

    fn starman() -> Self {
        let script = peers().join("block.psgi");
        let workers = ["--workers", STARMAN_WORKERS].map(OsString::from);
        let starman = Self::new("Starman, 50 workers", Program::Found("starman"));
        Self {
            listen_flag: Some("--listen"),
            is_slow: true,
            ..starman.arguments(workers).arguments([script])
        }
    }

    fn new(name: &str, program: Program) -> Self {
        Self {
            name: name.to_owned(),
            program,
            arguments: Vec::new(),
            listen_flag: None,
            core: None,
            is_slow: false,
        }
    }

    pub(crate) fn arguments<A: Into<OsString>>(
        mut self,
        arguments: impl IntoIterator<Item = A>,
    ) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// On a core of its own; else it has all of them.
    pub(crate) fn on_core(self, core: usize) -> Self {
        Self {
            core: Some(core),
            ..self
        }
    }

    /// The same server under another name.
    pub(crate) fn again(&self) -> Self {
        Self {
            name: format!("{}{AGAIN}", self.name),
            ..self.clone()
        }
    }

    /// Returns true if it is too slow for the numbers that the others compute.
    pub(crate) fn is_slow(&self) -> bool {
        self.is_slow
    }

    pub(crate) fn start(&self, context: &Context) -> anyhow::Result<Server> {
        self.launch(context)?.start()
    }

    pub(crate) fn launch(&self, context: &Context) -> anyhow::Result<Launch> {
        let program = match self.program {
            Program::Built(name) => context.binaries.path(name)?.to_owned(),
            Program::Found(name) => PathBuf::from(name),
        };
        let launch = Launch::new(program)
            .arguments(&self.arguments)
            .listen_flag(self.listen_flag);
        Ok(match self.core {
            Some(core) => launch.on_core(core),
            None => launch.on_all_cores(),
        })
    }

    /// Its program and arguments, for a tool that starts it.
    pub(crate) fn command(&self, context: &Context) -> anyhow::Result<Vec<OsString>> {
        let Program::Built(name) = self.program else {
            anyhow::bail!("{} was not built here", self.name);
        };
        let mut command = vec![context.binaries.path(name)?.into()];
        command.extend(self.arguments.iter().cloned());
        Ok(command)
    }
}

impl rounds::Contestant for Contestant {
    fn name(&self) -> &str {
        &self.name
    }
}

/// Returns the servers of the route that computes, and a line for each that is not installed.
pub(crate) fn for_computing(context: &Context) -> anyhow::Result<(Vec<Contestant>, Vec<String>)> {
    let (mut contestants, mut notes) = (for_both(context), Vec::new());
    if context.ours_only {
        return Ok((contestants, notes));
    }
    contestants.push(Contestant::axum("axum + load_shed", "load-shed"));
    if is_installed("node") {
        let version = node_version()?;
        contestants.push(Contestant::node("Node", "1"));
        contestants.push(Contestant::node("Node, cluster of 2", "2"));
        notes.push(format!("Node is {version}"));
    } else {
        notes.push("no node here: it was left out".to_owned());
    }
    Ok((contestants, notes))
}

/// Builds the server in Go, which is one file.
pub(crate) fn build_go(binaries: &mut Binaries) -> anyhow::Result<()> {
    binaries.build_go(GO_PROGRAM, &peers().join("server.go"), "isolation-axum")
}

/// Everybody, `ours` first; and a line for each that is not here.
pub(crate) fn all_servers(
    context: &Context,
    ours: Vec<Contestant>,
) -> anyhow::Result<(Vec<Contestant>, Vec<String>)> {
    let (mut contestants, mut notes) = (ours, Vec::new());
    if context.ours_only {
        return Ok((contestants, notes));
    }
    contestants.extend([
        Contestant::axum(AXUM_INLINE, "inline"),
        Contestant::axum("axum + spawn_blocking", "spawn-blocking"),
        Contestant::axum("axum + load_shed", "load-shed"),
    ]);
    let mut take = |contestant, is_here, remedy: &str| {
        let contestant: Contestant = contestant;
        if is_here {
            contestants.push(contestant);
        } else {
            notes.push(format!("LEFT OUT: {}: {remedy}", contestant.name));
        }
    };
    take(
        Contestant::node("Node, cluster of 2", "2"),
        is_installed("node"),
        "no node here",
    );
    take(
        Contestant::go(),
        context.binaries.path(GO_PROGRAM).is_ok(),
        "no go here",
    );
    take(
        Contestant::starman(),
        is_installed("starman"),
        "no starman here (apt-get install starman)",
    );
    if is_installed("node") {
        notes.push(format!("Node is {}", node_version()?));
    }
    Ok((contestants, notes))
}

/// Returns the servers of the route that blocks, and a line for each that is not installed.
pub(crate) fn for_blocking(context: &Context) -> (Vec<Contestant>, Vec<String>) {
    let (mut contestants, mut notes) = (for_both(context), Vec::new());
    if context.ours_only {
        return (contestants, notes);
    }
    if is_installed("starman") {
        contestants.push(Contestant::starman());
    } else {
        notes.push("no starman here: it was left out (apt-get install starman)".to_owned());
    }
    (contestants, notes)
}

/// Ours, and the peers that serve both what computes and what blocks.
pub(crate) fn for_both(context: &Context) -> Vec<Contestant> {
    let mut contestants = ours();
    if !context.ours_only {
        contestants.extend([
            Contestant::axum(AXUM_INLINE, "inline"),
            Contestant::axum("axum + spawn_blocking", "spawn-blocking"),
        ]);
    }
    contestants
}

/// The product and the layer by itself.
pub(crate) fn ours() -> Vec<Contestant> {
    vec![Contestant::ours(), Contestant::axum(LAYER, "auto")]
}

fn node_version() -> anyhow::Result<String> {
    let output = Command::new("node").arg("--version").output();
    let output = output.context("cannot run node")?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn peers() -> PathBuf {
    lab_directory().join("isolation-bench/peers")
}
