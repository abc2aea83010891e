use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use greenroom::actor::{Context, Handler};

use super::{BATCH, Feeder};
use crate::model::Head;
use crate::store;

/// The time after which the storage is asked again if it has failed.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The topics whose ends are to be looked up, one batch after the other.
#[derive(Debug, Default)]
pub(super) struct Heads {
    wanted: VecDeque<Arc<str>>,
    is_looking: bool,
    /// The storage has failed, and is not asked for a moment.
    is_resting: bool,
}

/// The ends of a batch were read from the storage.
struct Looked {
    topics: Vec<Arc<str>>,
    heads: store::Result<HashMap<String, Head>>,
}

/// The storage may be asked again.
struct Rested;

impl Heads {
    /// Returns `true` if no lookups are pending.
    pub(super) fn is_done(&self) -> bool {
        self.wanted.is_empty()
    }

    /// Puts topics that a client waits for at the front.
    pub(super) fn want_first(&mut self, topics: Vec<Arc<str>>) {
        for topic in topics {
            self.wanted.push_front(topic);
        }
    }
}

impl Feeder {
    /// Looks up the ends of all topics, those that are not open yet first.
    pub(super) fn look_up_all_heads(&mut self, context: &mut Context<Self>) {
        let (open, opening): (Vec<_>, Vec<_>) = self
            .topics
            .iter()
            .partition(|(_, topic)| topic.last().is_some());
        let all = opening.into_iter().chain(open);
        self.heads.wanted = all.map(|(name, _)| Arc::clone(name)).collect();
        self.look_up_heads(context);
    }

    pub(super) fn look_up_heads(&mut self, context: &mut Context<Self>) {
        if self.heads.is_looking || self.heads.is_resting || self.heads.wanted.is_empty() {
            return;
        }
        let count = BATCH.min(self.heads.wanted.len());
        let topics: Vec<_> = self.heads.wanted.drain(..count).collect();
        let store = Arc::clone(&self.store);
        let look = async move {
            let names: Vec<_> = topics.iter().map(ToString::to_string).collect();
            let heads = store.heads(&names).await;
            Looked { topics, heads }
        };
        self.heads.is_looking = context.pipe(look, |looked| looked).is_ok();
    }

    fn compare(&mut self, name: Arc<str>, end: u64) {
        let Some(topic) = self.topics.get_mut(&name) else {
            return;
        };
        match topic.last() {
            None => {
                topic.open(name, end, self.settings.recent_max);
                for waker in topic.watchers() {
                    self.agenda.wake(waker);
                }
            }
            Some(last) if last < end => self.pages.want(name),
            Some(_) => {}
        }
    }
}

impl Handler<Looked> for Feeder {
    type Reply = ();

    fn handle(&mut self, looked: Looked, context: &mut Context<Self>) {
        self.heads.is_looking = false;
        match looked.heads {
            Ok(heads) => {
                for name in looked.topics {
                    let end = heads.get(&*name).copied().unwrap_or_default().seq;
                    self.compare(name, end);
                }
                self.wait_for_agenda(context);
                self.read_pages(context);
                self.look_up_heads(context);
            }
            Err(error) => {
                tracing::debug!(%error, "the ends of topics are not known for now");
                self.heads.is_resting = true;
                context.once(RETRY_AFTER, Rested);
            }
        }
    }
}

impl Handler<Rested> for Feeder {
    type Reply = ();

    fn handle(&mut self, _: Rested, context: &mut Context<Self>) {
        self.heads.is_resting = false;
        self.look_up_all_heads(context);
    }
}
