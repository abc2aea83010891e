//! Events for actors.
#![cfg(feature = "actor")]

use greenroom_actor::{Actor, ActorSystem, AsyncHandler, Context, Mailbox};
use greenroom_bus::{Bus, Event};
use tokio::sync::mpsc;

/// An actor that passes on every event, and takes no next one before that was received.
struct Notifier(mpsc::Sender<Event>);

impl Actor for Notifier {}

impl AsyncHandler<Event> for Notifier {
    type Reply = ();

    async fn handle(&mut self, event: Event, _: &mut Context<Self>) {
        self.0.send(event).await.expect("the test receives");
    }
}

fn text(event: Option<Event>) -> String {
    match event.expect("an event comes") {
        Event::Message(message) => String::from_utf8_lossy(message.payload()).into_owned(),
        Event::Gap { missed, .. } => format!("gap of {missed:?}"),
    }
}

#[tokio::test]
async fn an_actor_is_told_of_events_and_of_those_that_its_mailbox_could_not_hold() {
    let system = ActorSystem::new().expect("a system");
    let bus = Bus::in_process();
    let (events, mut received) = mpsc::channel(1);
    let notifier = system
        .build(move || Notifier(events.clone()))
        .mailbox(Mailbox::bounded(2))
        .spawn()
        .expect("spawned");
    bus.subscribe_sink("/picture/*/likes", notifier.recipient())
        .expect("subscribed")
        .detach();

    let publish = |text: &'static str| {
        bus.try_publish("/picture/7/likes", text)
            .expect("published")
    };
    publish("first");
    assert_eq!(text(received.recv().await), "first");

    // One is in the channel, one in the handler, two in the mailbox.
    for number in ["1", "2", "3", "4", "5", "6"] {
        publish(number);
        tokio::task::yield_now().await;
        tokio::task::yield_now().await;
    }
    assert_eq!(text(received.recv().await), "1");
    assert_eq!(text(received.recv().await), "2");
    assert_eq!(text(received.recv().await), "3");
    assert_eq!(text(received.recv().await), "4");
    publish("7");
    assert_eq!(text(received.recv().await), "gap of Some(2)");
    assert_eq!(text(received.recv().await), "7");
}

#[tokio::test]
async fn the_subscription_ends_with_the_actor() {
    let system = ActorSystem::new().expect("a system");
    let bus = Bus::in_process();
    let (events, _received) = mpsc::channel(1);
    let notifier = system.spawn(move || Notifier(events.clone()));
    bus.subscribe_sink("/a", notifier.recipient())
        .expect("subscribed")
        .detach();
    notifier.stop();
    notifier.terminated().await;
    bus.try_publish("/a", "nobody").expect("published");
    assert_eq!(bus.status().subscriptions, 0);
}
