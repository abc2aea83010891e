use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::RwLock;

use super::frame::Events;

/// The end of a topic's log, shared by the Feeder, which writes it, and all watchers.
#[derive(Debug)]
pub(super) struct Log {
    topic: Arc<str>,
    capacity: usize,
    /// The number of the last event. It is written with `ring` locked, and read without by readers
    /// that only check for new events.
    last: AtomicU64,
    /// The last events, as JSON, the newest last, without gaps.
    ring: RwLock<VecDeque<Box<str>>>,
}

/// The outcome of [`Log::read`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Reading {
    /// The position is the end, or beyond it.
    End,
    /// Everything up to this number is in the frame.
    UpTo(u64),
    /// The next event is in the storage only.
    Older,
}

impl Log {
    /// Creates a log whose events up to `last` are in the storage only.
    pub(super) fn new(topic: Arc<str>, last: u64, capacity: usize) -> Self {
        Self {
            topic,
            capacity,
            last: AtomicU64::new(last),
            ring: RwLock::default(),
        }
    }

    pub(super) fn topic(&self) -> &Arc<str> {
        &self.topic
    }

    /// Returns the number of the last event.
    pub(super) fn last(&self) -> u64 {
        self.last.load(Ordering::Acquire)
    }

    /// Appends an event if it is the next one; ignores it otherwise.
    pub(super) fn append(&self, seq: u64, text: Box<str>) {
        let mut ring = self.ring.write();
        if seq != self.last() + 1 {
            return;
        }
        if ring.len() == self.capacity {
            ring.pop_front();
        }
        ring.push_back(text);
        self.last.store(seq, Ordering::Release);
    }

    /// Continues with the event `seq`, though events between the last one and this are missing.
    pub(super) fn skip_to(&self, seq: u64, text: Box<str>) {
        let mut ring = self.ring.write();
        ring.clear();
        ring.push_back(text);
        self.last.store(seq, Ordering::Release);
    }

    /// Adds the events after `position` to the frame, until it is full.
    pub(super) fn read(&self, position: u64, events: &mut Events) -> Reading {
        if self.last() <= position {
            return Reading::End;
        }
        let ring = self.ring.read();
        let missing = self.last() - position;
        let Some(known) = usize::try_from(missing)
            .ok()
            .and_then(|missing| ring.len().checked_sub(missing))
        else {
            return Reading::Older;
        };
        let mut reached = position;
        for text in ring.range(known..) {
            if events.is_full() {
                break;
            }
            events.push(text);
            reached += 1;
        }
        Reading::UpTo(reached)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log_of(numbers: impl IntoIterator<Item = u64>, capacity: usize) -> Log {
        let log = Log::new("/timeline".into(), 0, capacity);
        for seq in numbers {
            log.append(seq, seq.to_string().into());
        }
        log
    }

    fn read(log: &Log, position: u64) -> (Reading, String) {
        let mut events = Events::default();
        let reading = log.read(position, &mut events);
        let frame = events.finish();
        let text = frame
            .as_ref()
            .and_then(|frame| frame.as_text())
            .unwrap_or_default();
        (reading, text.to_owned())
    }

    #[test]
    fn a_reader_gets_what_is_behind_its_position() {
        let log = log_of(1..=5, 3);
        assert_eq!(
            read(&log, 2),
            (Reading::UpTo(5), r#"{"events":[3,4,5]}"#.to_owned())
        );
        assert_eq!(
            read(&log, 4),
            (Reading::UpTo(5), r#"{"events":[5]}"#.to_owned())
        );
        assert_eq!(read(&log, 5), (Reading::End, String::new()));
        assert_eq!(read(&log, 6), (Reading::End, String::new()));
    }

    #[test]
    fn what_the_ring_has_lost_is_older() {
        assert_eq!(read(&log_of(1..=5, 3), 1).0, Reading::Older);
        assert_eq!(
            read(&Log::new("/timeline".into(), 9, 3), 8).0,
            Reading::Older
        );
    }

    #[test]
    fn only_the_next_event_is_appended() {
        let log = log_of([1, 1, 3, 2, 2], 3);
        assert_eq!(
            read(&log, 0),
            (Reading::UpTo(2), r#"{"events":[1,2]}"#.to_owned())
        );
    }

    #[test]
    fn behind_a_skip_the_ring_begins_anew() {
        let log = log_of(1..=2, 3);
        log.skip_to(9, "9".into());
        assert_eq!(read(&log, 2).0, Reading::Older);
        assert_eq!(
            read(&log, 8),
            (Reading::UpTo(9), r#"{"events":[9]}"#.to_owned())
        );
    }
}
