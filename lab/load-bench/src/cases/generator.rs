//! The load generators under comparison.

use bench_kit::rounds::{AGAIN, Contestant};

/// A load generator under comparison.
#[derive(Clone, Debug)]
pub(super) struct Generator<K> {
    name: String,
    /// The kind that distinguishes it from the others.
    pub(super) kind: K,
}

impl<K: Clone> Generator<K> {
    pub(super) fn new(name: &str, kind: K) -> Self {
        let name = name.to_owned();
        Self { name, kind }
    }

    /// Returns the same under another name.
    pub(super) fn again(&self) -> Self {
        Self::new(&format!("{}{AGAIN}", self.name), self.kind.clone())
    }
}

impl<K> Contestant for Generator<K> {
    fn name(&self) -> &str {
        &self.name
    }
}
