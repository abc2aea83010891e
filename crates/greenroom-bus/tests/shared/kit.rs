//! Functions for the tests of all servers.

use std::time::Duration;

use greenroom_bus::{Bus, Event, GapCause, Subscription};

use crate::server::status;

/// A time far longer than anything here takes: a test that waits so long has failed.
pub(crate) const DEADLINE: Duration = Duration::from_mins(2);

pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, future)
        .await
        .expect("in time")
}

/// Waits until the condition holds. Something else must make it so.
pub(crate) async fn until(mut holds: impl FnMut() -> bool) {
    within(async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

/// Waits until the bus could not connect. Returns the error.
pub(crate) async fn failure(bus: &Bus) -> String {
    let error = || status(bus).last_error;
    until(|| error().is_some()).await;
    error().expect("it was there")
}

/// Subscribes, and waits until the server knows of it.
pub(crate) async fn subscribe(bus: &Bus, pattern: &str) -> Subscription {
    let subscription = bus.subscribe(pattern).expect("a pattern");
    within(subscription.established())
        .await
        .expect("established");
    subscription
}

pub(crate) async fn publish(bus: &Bus, topic: &str, text: impl ToString) {
    within(bus.publish(topic, text.to_string()))
        .await
        .expect("published");
}

pub(crate) async fn next(subscription: &mut Subscription) -> Event {
    within(subscription.recv()).await.expect("it has not ended")
}

/// Returns the payload of the next event, which is a message.
pub(crate) async fn text(subscription: &mut Subscription) -> String {
    let event = next(subscription).await;
    let message = event
        .message()
        .unwrap_or_else(|| panic!("not a message: {event:?}"));
    String::from_utf8(message.payload().to_vec()).expect("a text was published")
}

/// Receives up to the gap of a reconnection.
pub(crate) async fn gap(subscription: &mut Subscription) {
    while !is_reconnection(&next(subscription).await) {}
}

/// Publishes until the servers take it: they may not yet know that they are in charge.
pub(crate) async fn publish_at_last(bus: &Bus, topic: &str, text: &str) {
    within(async {
        while bus.publish(topic, text.to_owned()).await.is_err() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

pub(crate) fn is_reconnection(event: &Event) -> bool {
    matches!(
        event,
        Event::Gap {
            missed: None,
            cause: GapCause::Reconnected
        }
    )
}
