//! A news feed: every viewer of a picture gets its new likes at once, whichever machine the user
//! who likes it is connected to.
//!
//! `cargo run -p greenroom-bus --example feeder`

use std::io::{self, Write};

use greenroom_actor::{Actor, ActorRef, ActorSystem, BoxError, Context, Handler};
use greenroom_bus::{Bus, Event, SinkSubscription, Topic};
use tokio::sync::mpsc;

/// One client's view of one picture. With a `WebSocket`, `outbox` is its `Outbox`.
struct Feed {
    bus: Bus,
    picture: u64,
    outbox: mpsc::Sender<String>,
    /// The subscription, which ends with the state: a restarted feed subscribes again.
    subscription: Option<SinkSubscription>,
}

impl Actor for Feed {
    async fn started(&mut self, context: &mut Context<Self>) -> Result<(), BoxError> {
        let topic = format!("/picture/{}/likes", self.picture);
        let me = context.myself().recipient();
        self.subscription = Some(self.bus.subscribe_sink(topic.as_str(), me)?);
        Ok(())
    }
}

impl Handler<Event> for Feed {
    type Reply = ();

    fn handle(&mut self, event: Event, context: &mut Context<Self>) {
        let line = match event {
            Event::Message(like) => String::from_utf8_lossy(like.payload()).into_owned(),
            // The client reads the number of likes again: it is unknown which are missing here.
            Event::Gap { .. } => "reload".to_owned(),
        };
        if self.outbox.try_send(line).is_err() {
            // The client has left, or does not keep up.
            context.stop();
        }
    }
}

/// Serves the WebSocket of a new client, as a handler would.
fn feed(system: &ActorSystem, bus: &Bus, picture: u64) -> (ActorRef<Feed>, mpsc::Receiver<String>) {
    let (outbox, client) = mpsc::channel(64);
    let bus = bus.clone();
    let feed = system.spawn(move || Feed {
        bus: bus.clone(),
        picture,
        outbox: outbox.clone(),
        subscription: None,
    });
    (feed, client)
}

/// Handles a request by which a user likes a picture.
async fn like(bus: &Bus, picture: u64, user: &str) -> Result<(), BoxError> {
    let topic = Topic::new(&format!("/picture/{picture}/likes"))?;
    bus.publish(topic, user.to_owned()).await?;
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    // Between machines: `Bus::redis(RedisSettings::new("redis://127.0.0.1:6379")?)?`.
    let bus = Bus::in_process();
    let system = ActorSystem::new()?;
    let (_, mut client) = feed(&system, &bus, 1234);
    while bus.status().subscriptions == 0 {
        tokio::task::yield_now().await;
    }
    like(&bus, 1234, "abcd").await?;
    let who = client.recv().await.ok_or("the feed ended")?;
    writeln!(io::stdout(), "{who} likes picture 1234")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn subscribed(bus: &Bus, feeds: usize) {
        while bus.status().subscriptions != feeds {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_client_hears_of_its_picture_until_it_leaves() {
        let (bus, system) = (Bus::in_process(), ActorSystem::new().expect("a system"));
        let (first, mut clients_first) = feed(&system, &bus, 1);
        let (_second, mut clients_second) = feed(&system, &bus, 2);
        subscribed(&bus, 2).await;

        for (picture, user) in [(1, "ada"), (2, "bob"), (1, "cleo")] {
            like(&bus, picture, user).await.expect("published");
        }
        assert_eq!(clients_first.recv().await.as_deref(), Some("ada"));
        assert_eq!(clients_first.recv().await.as_deref(), Some("cleo"));
        assert_eq!(clients_second.recv().await.as_deref(), Some("bob"));

        // The feed notices it with the next like.
        drop(clients_first);
        like(&bus, 1, "dan").await.expect("published");
        first.terminated().await;
        subscribed(&bus, 1).await;
    }
}
