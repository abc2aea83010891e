//! The bus through a real Redis, which every test starts for itself.

mod away;
mod delivery;
mod gaps;
mod server;

use std::time::Duration;

use greenroom_bus::{Bus, Event, GapCause, Subscription};

/// Far longer than anything here takes: a test that waits so long has failed.
const DEADLINE: Duration = Duration::from_mins(1);

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, future)
        .await
        .expect("in time")
}

/// A subscription that the server knows of.
async fn subscribe(bus: &Bus, pattern: &str) -> Subscription {
    let subscription = bus.subscribe(pattern).expect("a pattern");
    within(subscription.established())
        .await
        .expect("established");
    subscription
}

async fn publish(bus: &Bus, topic: &str, text: impl ToString) {
    within(bus.publish(topic, text.to_string()))
        .await
        .expect("published");
}

async fn next(subscription: &mut Subscription) -> Event {
    within(subscription.recv()).await.expect("it has not ended")
}

/// The payload of the next event, which is a message.
async fn text(subscription: &mut Subscription) -> String {
    let event = next(subscription).await;
    let message = event
        .message()
        .unwrap_or_else(|| panic!("not a message: {event:?}"));
    String::from_utf8(message.payload().to_vec()).expect("a text was published")
}

fn is_reconnection(event: &Event) -> bool {
    matches!(
        event,
        Event::Gap {
            missed: None,
            cause: GapCause::Reconnected
        }
    )
}
