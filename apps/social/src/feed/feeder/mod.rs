//! The actor that knows the watchers of topics, and wakes them.

mod agenda;
mod heads;
mod pages;
mod topic;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use greenroom::actor::{Actor, ActorRef, AskError, BoxError, Context, Handler, Mailbox};
use greenroom::bus::Bus;

use super::DISPATCHER;
use super::subscriber::{ESTABLISH_WAIT, Subscribe, Subscribed, Subscriber};
use super::waker::Waker;
use crate::config::FeedSettings;
use crate::store::Store;
use agenda::Agenda;
use heads::Heads;
use pages::Pages;
use topic::{Arrival, Topic};

/// The topics of one batch of subscriptions or lookups.
const BATCH: usize = 500;
/// The batches that wait for the bus at a time.
const SUBSCRIBING_MAX: usize = 4;
/// The time that an event waits for those before it, which other replicas published at the same
/// time.
const GAP_WAIT: Duration = Duration::from_millis(20);
/// The messages that may wait; senders of more wait.
const MAILBOX_MESSAGES: u32 = 8_192;

/// An actor that keeps the logs of watched topics, and wakes their watchers.
#[derive(Debug)]
pub(super) struct Feeder {
    bus: Bus,
    store: Arc<dyn Store>,
    settings: FeedSettings,
    subscriber: Option<ActorRef<Subscriber>>,
    topics: HashMap<Arc<str>, Topic>,
    agenda: Agenda,
    heads: Heads,
    pages: Pages,
    to_subscribe: Vec<Arc<str>>,
    subscribing: usize,
    /// Topics that miss events before one that has arrived, and the ends of their logs at that
    /// time.
    gaps: HashMap<Arc<str>, u64>,
    /// The bus has lost messages, and all topics are about to be looked up.
    has_missed: bool,
}

/// A client asks for topics that it does not watch yet.
pub(super) struct Watch {
    pub(super) waker: Arc<Waker>,
    pub(super) topics: Vec<Arc<str>>,
}

/// A client leaves these topics.
pub(super) struct Unwatch {
    pub(super) waker: Arc<Waker>,
    pub(super) topics: Vec<Arc<str>>,
}

/// An event has arrived on the bus.
pub(super) struct Arrived {
    pub(super) topic: Arc<str>,
    pub(super) seq: u64,
    pub(super) text: Box<str>,
}

/// The bus has lost messages, of unknown topics.
pub(super) struct Missed;

/// The outcome of subscribing to these topics.
struct Joined {
    topics: Vec<Arc<str>>,
    subscribed: Result<Vec<Subscribed>, AskError>,
}

/// A client in the agenda is due.
struct Due;

/// The wait for the predecessors of early events is over.
struct GapsDue;

/// The wait for further reports of loss is over.
struct MissedDue;

/// The periodic check for missing events and unwatched topics is due.
#[derive(Clone)]
struct Check;

impl Feeder {
    pub(super) fn new(bus: Bus, store: Arc<dyn Store>, settings: FeedSettings) -> Self {
        Self {
            bus,
            store,
            agenda: Agenda::new(settings.pace),
            settings,
            subscriber: None,
            topics: HashMap::new(),
            heads: Heads::default(),
            pages: Pages::default(),
            to_subscribe: Vec::new(),
            subscribing: 0,
            gaps: HashMap::new(),
            has_missed: false,
        }
    }

    fn subscribe_next(&mut self, context: &mut Context<Self>) {
        while self.subscribing < SUBSCRIBING_MAX && !self.to_subscribe.is_empty() {
            let rest = self.to_subscribe.len().saturating_sub(BATCH);
            let topics = self.to_subscribe.split_off(rest);
            let bus = self.subscriber.clone();
            let join = async move {
                let bus = bus.expect("there is a subscriber from the beginning");
                let asked = bus.ask(Subscribe(topics.clone()));
                let subscribed = asked.timeout(2 * ESTABLISH_WAIT).await;
                Joined { topics, subscribed }
            };
            if context.pipe(join, |joined| joined).is_ok() {
                self.subscribing += 1;
            }
        }
    }

    /// Wakes the watchers of a topic that has new events.
    fn announce(&mut self, topic: &str, context: &mut Context<Self>) {
        if let Some(topic) = self.topics.get(topic) {
            self.agenda.announce(topic.watchers());
            self.wait_for_agenda(context);
        }
    }

    fn wait_for_agenda(&mut self, context: &mut Context<Self>) {
        if let Some(rest) = self.agenda.next() {
            context.once(rest, Due);
        }
    }

    fn wait_for_gap(&mut self, topic: Arc<str>, context: &mut Context<Self>) {
        let Some(last) = self.topics.get(&topic).and_then(Topic::last) else {
            return;
        };
        if self.gaps.is_empty() {
            context.once(GAP_WAIT, GapsDue);
        }
        self.gaps.entry(topic).or_insert(last);
    }

    /// Forgets clients that have left, and topics that nobody has watched for a whole interval.
    fn sweep(&mut self) {
        self.topics.retain(|_, topic| topic.sweep());
        metrics::gauge!("social_feed_topics").set(f64::from(
            u32::try_from(self.topics.len()).unwrap_or(u32::MAX),
        ));
        let unheard = self.topics.iter().filter(|(_, topic)| topic.is_unheard());
        let unheard: Vec<_> = unheard.map(|(name, _)| Arc::clone(name)).collect();
        self.to_subscribe.extend(unheard);
    }
}

impl Actor for Feeder {
    fn mailbox() -> Mailbox {
        Mailbox::bounded(MAILBOX_MESSAGES)
    }

    async fn started(&mut self, context: &mut Context<Self>) -> Result<(), BoxError> {
        let (bus, me) = (self.bus.clone(), context.myself().clone());
        let make = move || Subscriber::new(bus.clone(), me.clone());
        let spawn = context
            .build(make)
            .name("subscriber")
            .dispatcher(DISPATCHER);
        self.subscriber = Some(spawn.spawn()?);
        context.every(self.settings.check_every, Check);
        Ok(())
    }
}

impl Handler<Watch> for Feeder {
    type Reply = ();

    fn handle(&mut self, Watch { waker, topics }: Watch, context: &mut Context<Self>) {
        for name in topics {
            let is_new = !self.topics.contains_key(&name);
            let topic = self.topics.entry(Arc::clone(&name)).or_default();
            topic.join(&waker);
            if is_new {
                self.to_subscribe.push(name);
            }
        }
        self.agenda.wake(&waker);
        self.wait_for_agenda(context);
        self.subscribe_next(context);
    }
}

impl Handler<Unwatch> for Feeder {
    type Reply = ();

    fn handle(&mut self, Unwatch { waker, topics }: Unwatch, _: &mut Context<Self>) {
        for name in topics {
            if let Some(topic) = self.topics.get_mut(&name) {
                topic.leave(&waker);
            }
        }
    }
}

impl Handler<Joined> for Feeder {
    type Reply = ();

    fn handle(&mut self, joined: Joined, context: &mut Context<Self>) {
        self.subscribing -= 1;
        match joined.subscribed {
            Ok(subscribed) => {
                for (name, subscription) in subscribed {
                    if let Some(topic) = self.topics.get_mut(&name) {
                        topic.hear(subscription);
                    }
                }
            }
            Err(error) => {
                tracing::warn!(%error, "the bus is not heard; the storage is looked at instead");
            }
        }
        self.heads.want_first(joined.topics);
        self.look_up_heads(context);
        self.subscribe_next(context);
    }
}

impl Handler<Arrived> for Feeder {
    type Reply = ();

    fn handle(
        &mut self,
        Arrived {
            topic: name,
            seq,
            text,
        }: Arrived,
        context: &mut Context<Self>,
    ) {
        let Some(topic) = self.topics.get_mut(&name) else {
            return;
        };
        match topic.arrive(seq, text, self.settings.recent_max) {
            Arrival::New => self.announce(&name, context),
            Arrival::Early => self.wait_for_gap(name, context),
            Arrival::Known => {}
        }
    }
}

/// After a reconnect the bus reports a loss for each topic; they are handled together.
impl Handler<Missed> for Feeder {
    type Reply = ();

    fn handle(&mut self, _: Missed, context: &mut Context<Self>) {
        if !std::mem::replace(&mut self.has_missed, true) {
            context.once(GAP_WAIT, MissedDue);
        }
    }
}

impl Handler<MissedDue> for Feeder {
    type Reply = ();

    fn handle(&mut self, _: MissedDue, context: &mut Context<Self>) {
        self.has_missed = false;
        self.look_up_all_heads(context);
    }
}

impl Handler<Due> for Feeder {
    type Reply = ();

    fn handle(&mut self, _: Due, context: &mut Context<Self>) {
        self.agenda.wake_due();
        self.wait_for_agenda(context);
    }
}

impl Handler<GapsDue> for Feeder {
    type Reply = ();

    fn handle(&mut self, _: GapsDue, context: &mut Context<Self>) {
        for (name, last) in std::mem::take(&mut self.gaps) {
            if self
                .topics
                .get(&name)
                .is_some_and(|topic| topic.has_gap_behind(last))
            {
                self.pages.want(name);
            }
        }
        self.read_pages(context);
    }
}

impl Handler<Check> for Feeder {
    type Reply = ();

    fn handle(&mut self, _: Check, context: &mut Context<Self>) {
        self.sweep();
        self.subscribe_next(context);
        // An unfinished round continues: restarted each time, it would never complete.
        if self.heads.is_done() {
            self.look_up_all_heads(context);
        } else {
            self.look_up_heads(context);
        }
    }
}

/// Asks all clients to reconnect, after a failure as after a stop.
impl Drop for Feeder {
    fn drop(&mut self) {
        for topic in self.topics.values() {
            topic.watchers().iter().for_each(|waker| waker.lose());
        }
    }
}
