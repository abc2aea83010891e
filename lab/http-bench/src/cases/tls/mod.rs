//! TLS: servers that listen over it and without, with one certificate for all.

mod cost;
mod flood;
mod handshakes;
mod idle;
mod requests;
mod site;

use bench_kit::rounds::{self, AGAIN};

pub(crate) use flood::flood;
pub(crate) use handshakes::{full, resumed};
pub(crate) use idle::idle;
pub(crate) use requests::{h2, keepalive};

use super::contestant::Contestant;

/// A server under one load.
struct Entry<L> {
    name: String,
    server: Contestant,
    load: L,
}

impl<L> Entry<L> {
    fn new(server: &Contestant, load: L, load_name: &str) -> Self {
        Self {
            name: entry_name(&server.name, load_name),
            server: server.clone(),
            load,
        }
    }

    /// The same once more, to show the difference between equals.
    fn again(&self) -> Self
    where
        L: Clone,
    {
        Self {
            name: format!("{}{AGAIN}", self.name),
            server: self.server.clone(),
            load: self.load.clone(),
        }
    }
}

impl<L> rounds::Contestant for Entry<L> {
    fn name(&self) -> &str {
        &self.name
    }
}

fn entry_name(server: &str, load: &str) -> String {
    format!("{server}, {load}")
}
