use std::sync::Arc;

use super::super::frame::{Events, Notices};
use super::super::log::{Log, Reading};
use super::super::page::Page;

/// The position of a client in a topic.
#[derive(Debug)]
pub(super) struct Cursor {
    log: Arc<Log>,
    /// The number of the last event that the client has.
    position: u64,
    /// The client has not been told yet that its watch is in force.
    is_new: bool,
}

impl Cursor {
    /// Creates a cursor that begins at the client's position, or at the log's end.
    pub(super) fn new(log: Arc<Log>, position: Option<u64>) -> Self {
        let position = position.unwrap_or_else(|| log.last());
        Self {
            log,
            position,
            is_new: true,
        }
    }

    pub(super) fn topic(&self) -> &Arc<str> {
        self.log.topic()
    }

    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// Moves the cursor to where the client wants to begin.
    pub(super) fn rewind(&mut self, position: Option<u64>) {
        *self = Self::new(Arc::clone(&self.log), position);
    }

    /// Adds new events to the frame.
    ///
    /// Returns `false` if only the storage knows the next event, or if the position exists at all.
    pub(super) fn advance(
        &mut self,
        page: &mut Option<Page>,
        events: &mut Events,
        notices: &mut Notices,
    ) -> bool {
        if let Some(page) = page
            .as_mut()
            .filter(|page| page.is_of(self.topic()) && page.is_at(self.position))
        {
            self.confirm(notices);
            self.position = page.pour(events);
            if events.is_full() {
                return true;
            }
        }
        let last = self.log.last();
        if self.position == last || (self.position > last && !self.is_new) {
            self.confirm(notices);
            return true;
        }
        match self.log.read(self.position, events) {
            Reading::UpTo(reached) => {
                self.confirm(notices);
                self.position = reached;
                true
            }
            Reading::End | Reading::Older => false,
        }
    }

    /// Handles that the position is the end of the storage's log.
    pub(super) fn is_at_end(&mut self, notices: &mut Notices) {
        let last = self.log.last();
        if last > self.position {
            // The storage has less than the log in memory: the topic was deleted.
            self.reset(last, notices);
        } else {
            self.confirm(notices);
        }
    }

    /// Tells the client to load its state anew, and to continue from there.
    pub(super) fn reset(&mut self, end: u64, notices: &mut Notices) {
        self.position = end;
        self.is_new = false;
        notices.reset(self.log.topic(), end);
    }

    fn confirm(&mut self, notices: &mut Notices) {
        if std::mem::take(&mut self.is_new) {
            notices.at(self.log.topic(), self.position);
        }
    }
}
