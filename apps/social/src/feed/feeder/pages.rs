use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use greenroom::actor::{Context, Handler};

use super::{Feeder, Topic};
use crate::model::Event;
use crate::store::{self, Store};

/// The topics that are read at a time.
const READING_MAX: usize = 8;

/// The topics whose logs lack events that the storage has.
#[derive(Debug, Default)]
pub(super) struct Pages {
    wanted: VecDeque<Arc<str>>,
    /// Topics that wait or are being read.
    known: HashSet<Arc<str>>,
    reading: usize,
}

/// Events were read from the storage.
struct Read {
    topic: Arc<str>,
    events: store::Result<Vec<Event>>,
}

impl Pages {
    pub(super) fn want(&mut self, topic: Arc<str>) {
        if self.known.insert(Arc::clone(&topic)) {
            self.wanted.push_back(topic);
        }
    }
}

impl Feeder {
    pub(super) fn read_pages(&mut self, context: &mut Context<Self>) {
        while self.pages.reading < READING_MAX
            && let Some(name) = self.pages.wanted.pop_front()
        {
            let Some(last) = self.topics.get(&name).and_then(Topic::last) else {
                self.pages.known.remove(&name);
                continue;
            };
            let store = Arc::clone(&self.store);
            let limit = u32::try_from(self.settings.recent_max).unwrap_or(u32::MAX);
            let read = async move {
                let events = read(&*store, &name, last, limit).await;
                Read {
                    topic: name,
                    events,
                }
            };
            if context.pipe(read, |read| read).is_ok() {
                self.pages.reading += 1;
            }
        }
    }
}

/// Reads the events after `last`; or the last ones, if there are more than the log holds anyway.
async fn read(store: &dyn Store, topic: &str, last: u64, limit: u32) -> store::Result<Vec<Event>> {
    let events = store.events(topic, last, limit).await?;
    if events.len() < limit as usize {
        return Ok(events);
    }
    store.last_events(topic, limit).await
}

impl Handler<Read> for Feeder {
    type Reply = ();

    fn handle(&mut self, read: Read, context: &mut Context<Self>) {
        self.pages.reading -= 1;
        self.pages.known.remove(&read.topic);
        match read.events {
            Ok(events) => {
                if let Some(topic) = self.topics.get_mut(&read.topic) {
                    topic.fill(&events);
                }
                self.announce(&read.topic, context);
            }
            // The next periodic check finds it again.
            Err(error) => {
                tracing::debug!(topic = &*read.topic, %error, "a log is not caught up for now");
            }
        }
        self.read_pages(context);
    }
}
