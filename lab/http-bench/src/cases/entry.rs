//! Servers under several loads.

use bench_kit::rounds::{self, AGAIN};

use super::contestant::Contestant;

/// A server under one load.
pub(crate) struct Entry<L> {
    pub(crate) name: String,
    pub(crate) server: Contestant,
    pub(crate) load: L,
}

impl<L> Entry<L> {
    pub(crate) fn new(server: &Contestant, load: L, load_name: &str) -> Self {
        Self {
            name: entry_name(&server.name, load_name),
            server: server.clone(),
            load,
        }
    }

    /// The same once more, to show the difference between equals.
    pub(crate) fn again(&self) -> Self
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

pub(crate) fn entry_name(server: &str, load: &str) -> String {
    format!("{server}, {load}")
}
