//! The times at which likes were due, from which the latency of their events follows.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// The likes of one picture.
#[derive(Debug)]
struct Column {
    /// The number of the event before the first like.
    before: u64,
    /// Nanoseconds since the board was made, by the number of the like; 0 until it is sent.
    due: Vec<AtomicU64>,
}

/// The likes that are made, picture by picture, one after the other.
#[derive(Debug)]
pub(crate) struct Board {
    base: Instant,
    columns: Vec<Column>,
    by_topic: HashMap<String, usize>,
}

impl Board {
    /// Makes a board for so many likes of each picture; topics in their order, each with the number
    /// of its last event.
    pub(crate) fn new(topics: &[(String, u64)], likes_each: usize) -> Self {
        let column = |(_, before): &(String, u64)| Column {
            before: *before,
            due: (0..likes_each).map(|_| AtomicU64::new(0)).collect(),
        };
        let numbered = topics.iter().enumerate();
        Self {
            base: Instant::now(),
            columns: topics.iter().map(column).collect(),
            by_topic: numbered
                .map(|(index, (topic, _))| (topic.clone(), index))
                .collect(),
        }
    }

    /// Notes that a like was due at this moment.
    pub(super) fn note(&self, picture: usize, number: usize, due: Instant) {
        let nanos = self.nanos(due).max(1);
        self.columns[picture].due[number].store(nanos, Ordering::Release);
    }

    /// Returns the number of a like's event.
    pub(super) fn event_of(&self, picture: usize, number: usize) -> u64 {
        self.columns[picture].before + 1 + number as u64
    }

    /// Returns the picture of a topic.
    pub(super) fn picture(&self, topic: &str) -> Option<usize> {
        self.by_topic.get(topic).copied()
    }

    /// Returns the number of the event before the first like of a picture.
    pub(super) fn before(&self, picture: usize) -> u64 {
        self.columns[picture].before
    }

    /// Returns the number of likes of a picture in the end.
    pub(super) fn likes_each(&self) -> u64 {
        self.columns
            .first()
            .map_or(0, |column| column.due.len() as u64)
    }

    /// Returns the latency of an event that arrives at this moment, in nanoseconds; `None` if it is
    /// of no like on the board.
    pub(super) fn latency(&self, picture: usize, seq: u64, arrived: Instant) -> Option<u64> {
        let column = &self.columns[picture];
        let number = seq.checked_sub(column.before + 1)?;
        let due = column.due.get(usize::try_from(number).ok()?)?;
        let due = due.load(Ordering::Acquire);
        (due > 0).then(|| self.nanos(arrived).saturating_sub(due))
    }

    fn nanos(&self, moment: Instant) -> u64 {
        let since = moment.saturating_duration_since(self.base);
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn an_event_is_as_late_as_its_like_was_due() {
        let board = Board::new(&[("/a".to_owned(), 7)], 2);
        let due = Instant::now() + Duration::from_secs(1);
        assert_eq!(board.event_of(0, 0), 8);
        assert_eq!(board.latency(0, 8, due), None);
        board.note(0, 0, due);
        let latency = board.latency(0, 8, due + Duration::from_millis(5));
        assert_eq!(latency, Some(5_000_000));
        assert_eq!(board.latency(0, 7, due), None);
        assert_eq!(board.latency(0, 10, due), None);
    }
}
