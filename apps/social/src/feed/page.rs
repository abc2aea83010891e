use std::collections::VecDeque;
use std::sync::Arc;

use super::Shared;
use super::frame::{Events, text_of};
use crate::model::Event;
use crate::store;

/// The events that are read from the storage at a time, for one client.
const PAGE_EVENTS: u32 = 128;

/// Events of a topic, as JSON, that a client needs and the log in memory no longer has.
#[derive(Debug)]
pub(super) struct Page {
    topic: Arc<str>,
    /// The number before that of the first event.
    position: u64,
    texts: VecDeque<String>,
}

/// The outcome of [`find`].
#[derive(Debug)]
pub(super) enum Found {
    Page(Page),
    /// Nothing: the position is the log's end.
    End,
    /// Neither the next event nor the end: the position is too old, or beyond the end, which is
    /// given.
    Nowhere(u64),
}

impl Page {
    pub(super) fn is_of(&self, topic: &str) -> bool {
        &*self.topic == topic
    }

    /// Returns `true` if it continues at this position.
    pub(super) fn is_at(&self, position: u64) -> bool {
        self.position == position && !self.texts.is_empty()
    }

    /// Moves events into the frame, until it is full, and returns the number of the last one.
    pub(super) fn pour(&mut self, events: &mut Events) -> u64 {
        while !events.is_full()
            && let Some(text) = self.texts.pop_front()
        {
            events.push(&text);
            self.position += 1;
        }
        self.position
    }
}

/// Reads the events after a position from the storage.
///
/// # Errors
/// Fails if the storage does.
pub(super) async fn find(shared: &Shared, topic: &Arc<str>, position: u64) -> store::Result<Found> {
    // The semaphore is never closed, and if it were, reading would still be right.
    let _permit = shared.reads.acquire().await;
    shared.meters.pages.increment(1);
    let events = shared.store.events(topic, position, PAGE_EVENTS).await?;
    if let Some(page) = page_at(topic, position, &events) {
        return Ok(Found::Page(page));
    }
    let heads = shared.store.heads(&[topic.to_string()]).await?;
    let end = heads.get(&**topic).copied().unwrap_or_default().seq;
    if end == position {
        return Ok(Found::End);
    }
    if end < position || !events.is_empty() {
        return Ok(Found::Nowhere(end));
    }
    // The first event was written between the two reads.
    let events = shared.store.events(topic, position, PAGE_EVENTS).await?;
    Ok(page_at(topic, position, &events).map_or(Found::Nowhere(end), Found::Page))
}

/// Returns a page of the events, if the first one is the next.
fn page_at(topic: &Arc<str>, position: u64, events: &[Event]) -> Option<Page> {
    let is_next = events
        .first()
        .is_some_and(|first| first.seq == position + 1);
    is_next.then(|| Page {
        topic: Arc::clone(topic),
        position,
        texts: events.iter().map(text_of).collect(),
    })
}
