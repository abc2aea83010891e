use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use greenroom::actor::{
    Actor, ActorRef, AsyncHandler, Context, Handler, Mailbox, ReplyHandler, ReplyTo,
};
use greenroom::bus::{Bus, Event, Message, SinkSubscription};
use serde::Deserialize;
use tokio::time::timeout;

use super::feeder::{Arrived, Feeder, Missed};

/// The longest wait for a subscription to be established. While the bus is down it is not; then the
/// feed relies on the storage.
pub(super) const ESTABLISH_WAIT: Duration = Duration::from_secs(1);
/// The events that may wait; more become a gap, which is read from the storage.
const MAILBOX_MESSAGES: u32 = 8_192;

/// An actor that listens to the bus for the Feeder.
#[derive(Debug)]
pub(super) struct Subscriber {
    bus: Bus,
    feeder: ActorRef<Feeder>,
}

/// A request to subscribe to these topics.
pub(super) struct Subscribe(pub(super) Vec<Arc<str>>);

/// A topic and its subscription; none if the bus rejects it.
pub(super) type Subscribed = (Arc<str>, Option<Arc<SinkSubscription>>);

/// The subscriptions are established, or the wait is over.
struct Established {
    subscribed: Vec<Subscribed>,
    reply: ReplyTo<Vec<Subscribed>>,
}

/// The field of an event that must be known; the rest only has to be JSON.
#[derive(Deserialize)]
struct Numbered {
    seq: u64,
}

impl Subscriber {
    pub(super) fn new(bus: Bus, feeder: ActorRef<Feeder>) -> Self {
        Self { bus, feeder }
    }

    fn subscribe(&self, topic: Arc<str>, context: &Context<Self>) -> Subscribed {
        match self
            .bus
            .subscribe_sink(&*topic, context.myself().recipient())
        {
            Ok(subscription) => (topic, Some(Arc::new(subscription))),
            Err(error) => {
                tracing::warn!(topic = &*topic, %error, "a topic is not heard on the bus");
                (topic, None)
            }
        }
    }
}

impl Actor for Subscriber {
    fn mailbox() -> Mailbox {
        Mailbox::bounded(MAILBOX_MESSAGES)
    }
}

impl ReplyHandler<Subscribe> for Subscriber {
    type Reply = Vec<Subscribed>;

    fn handle(
        &mut self,
        Subscribe(topics): Subscribe,
        reply: ReplyTo<Self::Reply>,
        context: &mut Context<Self>,
    ) {
        let subscribed: Vec<_> = topics
            .into_iter()
            .map(|topic| self.subscribe(topic, context))
            .collect();
        let established = async move {
            let heard = subscribed
                .iter()
                .filter_map(|(_, subscription)| subscription.as_ref());
            let all = join_all(heard.map(|subscription| subscription.established()));
            if timeout(ESTABLISH_WAIT, all).await.is_err() {
                tracing::debug!("the bus is away: topics are heard later");
            }
            subscribed
        };
        // If this fails, the asker gets an error, and asks again.
        let _ = context.pipe(established, |subscribed| Established { subscribed, reply });
    }
}

impl Handler<Established> for Subscriber {
    type Reply = ();

    fn handle(&mut self, established: Established, _: &mut Context<Self>) {
        established.reply.send(established.subscribed);
    }
}

impl AsyncHandler<Event> for Subscriber {
    type Reply = ();

    async fn handle(&mut self, event: Event, _: &mut Context<Self>) {
        // Both fail only if the Feeder is about to end, and this actor with it.
        match event {
            Event::Message(message) => match parse(&message) {
                Ok(arrived) => drop(self.feeder.send(arrived).await),
                Err(error) => {
                    let topic = message.topic().as_str();
                    tracing::warn!(topic, %error, "no event came on the bus");
                }
            },
            Event::Gap { .. } => drop(self.feeder.send(Missed).await),
        }
    }
}

fn parse(message: &Message) -> anyhow::Result<Arrived> {
    let text = std::str::from_utf8(message.payload())?;
    let Numbered { seq } = serde_json::from_str(text)?;
    Ok(Arrived {
        topic: message.topic().as_str().into(),
        seq,
        text: text.into(),
    })
}
