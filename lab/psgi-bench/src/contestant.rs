//! The start of a server, and the servers of a case.

use std::ffi::OsString;
use std::path::PathBuf;

use bench_kit::process::{Launch, Server};
use bench_kit::rounds::{self, AGAIN};
use bench_kit::tools::GreenroomBench;

use crate::cases::Context;
use crate::peer::Peer;

/// The cores of server and load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placement {
    /// All processes of the server on core 0, the load on core 1.
    Apart,
    /// Both on all cores.
    Free,
}

/// A server with its application.
#[derive(Clone, Debug)]
pub(crate) struct Contestant {
    name: String,
    pub(crate) peer: Peer,
    application: &'static str,
    workers: u32,
    placement: Placement,
    further: Vec<OsString>,
}

impl Contestant {
    /// Returns a server with one worker, on a core of its own.
    pub(crate) fn new(peer: Peer, application: &'static str) -> Self {
        Self {
            name: peer.name().to_owned(),
            peer,
            application,
            workers: 1,
            placement: Placement::Apart,
            further: Vec::new(),
        }
    }

    pub(crate) fn named(self, name: String) -> Self {
        Self { name, ..self }
    }

    pub(crate) fn workers(self, workers: u32) -> Self {
        Self { workers, ..self }
    }

    pub(crate) fn placed(self, placement: Placement) -> Self {
        Self { placement, ..self }
    }

    /// Adds arguments after the application's file.
    pub(crate) fn further<A: Into<OsString>>(self, further: impl IntoIterator<Item = A>) -> Self {
        let further = further.into_iter().map(Into::into).collect();
        Self { further, ..self }
    }

    fn again(&self) -> Self {
        self.clone().named(format!("{}{AGAIN}", self.name))
    }

    pub(crate) fn start(&self, context: &Context) -> anyhow::Result<Server> {
        let program = match self.peer {
            Peer::Greenroom => context.binaries.path(self.peer.program())?.to_owned(),
            _ => PathBuf::from(self.peer.program()),
        };
        let mut launch = Launch::new(program)
            .arguments(self.peer.arguments(self.workers))
            .arguments([self.peer.file(self.application)])
            .arguments(&self.further)
            .listen_flag(self.peer.listen_flag());
        if self.placement == Placement::Free {
            launch = launch.on_all_cores();
        }
        if let Some((name, value)) = context.installed.environment(self.peer) {
            launch = launch.environment(name, value);
        }
        launch.start()
    }

    /// Returns the load generator, on its cores.
    pub(crate) fn bench(&self, context: &Context) -> anyhow::Result<GreenroomBench> {
        let bench = GreenroomBench::new(&context.binaries)?;
        Ok(match self.placement {
            Placement::Apart => bench,
            Placement::Free => bench.on_all_cores(),
        })
    }
}

impl rounds::Contestant for Contestant {
    fn name(&self) -> &str {
        &self.name
    }
}

/// The servers of a case.
#[derive(Debug)]
pub(crate) struct LineUp {
    /// The servers to measure; the last one is the first one again.
    pub(crate) present: Vec<Contestant>,
    /// The names of the missing ones.
    pub(crate) missing: Vec<String>,
    /// The reasons why they are missing, and notes on the others.
    pub(crate) notes: Vec<String>,
}

impl LineUp {
    pub(crate) fn of(contestants: impl IntoIterator<Item = Contestant>, context: &Context) -> Self {
        let mut line_up = Self {
            present: Vec::new(),
            missing: Vec::new(),
            notes: Vec::new(),
        };
        for contestant in contestants {
            if context.wants(contestant.peer) {
                line_up.take(contestant, context);
            }
        }
        let again = line_up.present.first().map(Contestant::again);
        line_up.present.extend(again);
        line_up.notes.dedup();
        line_up
    }

    fn take(&mut self, contestant: Contestant, context: &Context) {
        self.notes.extend(context.installed.note(contestant.peer));
        if let Some(why) = context.installed.missing(contestant.peer) {
            self.missing.push(contestant.name);
            self.notes.push(why);
        } else {
            self.present.push(contestant);
        }
    }
}
