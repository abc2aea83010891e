//! The servers of the benchmark.

use std::path::PathBuf;

use bench_kit::lab_directory;

/// A server of PSGI applications, or the accept loop that people write instead of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    Greenroom,
    Twiggy,
    Feersum,
    FeersumKeepAlive,
    Starman,
    Starlet,
    AcceptLoop,
}

/// More requests than any run sends: a worker that is replaced under load loses its CPU times.
const REQUESTS_MAX: &str = "1000000000";
/// The longest backlog that most kernels allow; the other servers have it by default.
const BACKLOG: &str = "4096";

impl Peer {
    /// Returns the name in the tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Greenroom => "Greenroom",
            Self::Twiggy => "Twiggy",
            Self::Feersum => "Feersum",
            Self::FeersumKeepAlive => "Feersum, keep-alive",
            Self::Starman => "Starman",
            Self::Starlet => "Starlet",
            Self::AcceptLoop => "accept loop",
        }
    }

    /// Returns the program on the search path, if it is not built for this run.
    pub(crate) fn program(self) -> &'static str {
        match self {
            Self::Greenroom => "greenroom",
            Self::Twiggy => "twiggy",
            Self::Starman => "starman",
            Self::Feersum | Self::FeersumKeepAlive | Self::Starlet => "plackup",
            Self::AcceptLoop => "perl",
        }
    }

    /// Returns the flag that takes an address; the accept loop announces its own.
    pub(crate) fn listen_flag(self) -> Option<&'static str> {
        (self != Self::AcceptLoop).then_some("--listen")
    }

    /// Returns the arguments before the application's file.
    pub(crate) fn arguments(self, workers: u32) -> Vec<String> {
        let workers = workers.to_string();
        let arguments: &[&str] = match self {
            Self::Greenroom => &[
                "serve",
                "--workers",
                &workers,
                "--loops",
                "1",
                "--no-access-log",
            ],
            Self::Twiggy => &["-E", "deployment", "--backlog", BACKLOG],
            // It does not load AnyEvent by itself, as Twiggy does and Greenroom.
            Self::Feersum => &["-MAnyEvent", "-s", "Feersum", "-E", "deployment"],
            Self::FeersumKeepAlive => &[
                "-MAnyEvent",
                "-s",
                "Feersum",
                "-E",
                "deployment",
                "--keepalive",
                "1",
            ],
            Self::Starman => &[
                "-E",
                "deployment",
                "--workers",
                &workers,
                "--backlog",
                BACKLOG,
                "--max-requests",
                REQUESTS_MAX,
            ],
            Self::Starlet => &[
                "-s",
                "Starlet",
                "-E",
                "deployment",
                "--max-workers",
                &workers,
                "--max-keepalive-reqs",
                REQUESTS_MAX,
                "--max-reqs-per-child",
                REQUESTS_MAX,
            ],
            Self::AcceptLoop => &[],
        };
        arguments
            .iter()
            .map(|&argument| argument.to_owned())
            .collect()
    }

    /// Returns the flag that loads the application before the workers are forked.
    pub(crate) fn preload_flag(self) -> &'static str {
        match self {
            Self::Greenroom => "--preload",
            _ => "--preload-app",
        }
    }

    /// Returns the file to serve: for the accept loop, its own program.
    pub(crate) fn file(self, application: &str) -> PathBuf {
        match self {
            Self::AcceptLoop => lab_directory().join("http-bench/standins/pixel.pl"),
            _ => lab_directory().join("../examples/psgi").join(application),
        }
    }
}
