//! Weighted round robin.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::plan::Paths;

/// Smooth weighted round robin, as in nginx: of weights 5, 1, 1 the order is a a b a c a a.
#[derive(Clone, Debug)]
pub(crate) struct Turns {
    entries: Vec<Entry>,
    total: i64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    weight: i64,
    credit: i64,
}

impl Turns {
    /// Creates an entry for each weight; there is at least one.
    pub(crate) fn new(weights: impl IntoIterator<Item = u32>) -> Self {
        let entry = |weight: u32| Entry {
            weight: weight.into(),
            credit: 0,
        };
        let entries: Vec<_> = weights.into_iter().map(entry).collect();
        let total = entries.iter().map(|entry| entry.weight).sum();
        Self { entries, total }
    }

    /// Returns the index of the next entry.
    pub(crate) fn next(&mut self) -> usize {
        // The common case, taken for every request.
        if self.entries.len() == 1 {
            return 0;
        }
        let mut best = 0;
        for index in 0..self.entries.len() {
            self.entries[index].credit += self.entries[index].weight;
            if self.entries[index].credit > self.entries[best].credit {
                best = index;
            }
        }
        self.entries[best].credit -= self.total;
        best
    }
}

/// The paths of a stream, and the number of turns that all its threads took among them.
#[derive(Debug)]
pub(crate) struct PathTurns {
    paths: Arc<Paths>,
    taken: AtomicUsize,
}

impl PathTurns {
    /// Creates the paths without any turn taken.
    pub(crate) fn new(paths: Arc<Paths>) -> Self {
        Self {
            paths,
            taken: AtomicUsize::new(0),
        }
    }

    /// Returns the next turn, counted from 0.
    pub(crate) fn next(&self) -> usize {
        self.taken.fetch_add(1, Ordering::Relaxed) % self.paths.turns()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_smooth_and_in_proportion() {
        let mut turns = Turns::new([5, 1, 1]);
        let order: Vec<_> = (0..7).map(|_| turns.next()).collect();
        assert_eq!(order, [0, 0, 1, 0, 2, 0, 0]);
    }
}
