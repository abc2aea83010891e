//! Who takes part.

use std::path::PathBuf;

use bench_kit::lab_directory;

/// A server of PSGI applications, or what people write instead of one.
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

/// Beyond every run: a worker that is replaced under load takes its clock with it.
const REQUESTS_MAX: &str = "1000000000";
/// As long as the kernel lets it be on most machines; the others have it by themselves.
const BACKLOG: &str = "4096";

impl Peer {
    /// The name in the tables.
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

    /// On the search path, if it is not built for this run.
    pub(crate) fn program(self) -> &'static str {
        match self {
            Self::Greenroom => "greenroom",
            Self::Twiggy => "twiggy",
            Self::Starman => "starman",
            Self::Feersum | Self::FeersumKeepAlive | Self::Starlet => "plackup",
            Self::AcceptLoop => "perl",
        }
    }

    /// The flag that takes an address; the accept loop announces its own.
    pub(crate) fn listen_flag(self) -> Option<&'static str> {
        (self != Self::AcceptLoop).then_some("--listen")
    }

    /// Before the application's file.
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

    /// Loads the application before the workers are forked.
    pub(crate) fn preload_flag(self) -> &'static str {
        match self {
            Self::Greenroom => "--preload",
            _ => "--preload-app",
        }
    }

    /// The file that it is to serve: of the accept loop, itself.
    pub(crate) fn file(self, application: &str) -> PathBuf {
        match self {
            Self::AcceptLoop => lab_directory().join("http-bench/standins/pixel.pl"),
            _ => lab_directory().join("../examples/psgi").join(application),
        }
    }
}
