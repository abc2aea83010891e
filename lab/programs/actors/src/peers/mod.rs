//! The cases with each library, as its documentation would have them written.

mod actix;
mod greenroom;
mod kameo;
mod ractor;
mod tokio;
mod xtra;

use clap::{Parser, ValueEnum};

use crate::{Options, Outcome};

/// One case with one actor library; prints its cost as a line of JSON
#[derive(Clone, Debug, Parser)]
pub struct Arguments {
    /// The library
    #[arg(long, value_enum)]
    peer: Peer,
    #[command(flatten)]
    options: Options,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Peer {
    Actix,
    Greenroom,
    Kameo,
    Ractor,
    Tokio,
    Xtra,
}

impl Arguments {
    /// Runs the case.
    ///
    /// # Errors
    /// If the measurement fails.
    pub fn run(&self) -> anyhow::Result<Outcome> {
        let run = match self.peer {
            Peer::Actix => actix::run,
            Peer::Greenroom => greenroom::run,
            Peer::Kameo => kameo::run,
            Peer::Ractor => ractor::run,
            Peer::Tokio => tokio::run,
            Peer::Xtra => xtra::run,
        };
        run(&self.options)
    }
}
