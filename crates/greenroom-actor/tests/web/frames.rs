//! Frames in both directions.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use greenroom_actor::web::{SlowReader, WebSocketSettings};
use greenroom_actor::{ActorSystem, Backoff, Reason, Supervision};
use tokio_tungstenite::tungstenite::Message;

use crate::client::{Client, number};
use crate::rig::{Rig, Settings, within};

#[tokio::test]
async fn messages_reach_the_actor_and_its_replies_the_client() {
    within(async {
        let mut rig = Rig::start(Settings::default()).await;
        let mut client = Client::open(&mut rig).await;
        client.say("hello").await;
        assert_eq!(client.hears_text().await, "1 hello");
        client.say("again").await;
        assert_eq!(client.hears_text().await, "2 again");
        let bytes = Message::binary(vec![0, 159, 146, 150]);
        client.0.send(bytes.clone()).await.unwrap();
        assert_eq!(client.hears().await, bytes);
    })
    .await;
}

#[tokio::test]
async fn each_connection_has_its_own_actor() {
    within(async {
        let mut rig = Rig::start(Settings::default()).await;
        let mut clients = Vec::new();
        for _ in 0..20 {
            clients.push(Client::open(&mut rig).await);
        }
        for (number, client) in clients.iter_mut().enumerate() {
            client.say(&format!("I am {number}")).await;
        }
        for (number, client) in clients.iter_mut().enumerate() {
            assert_eq!(client.hears_text().await, format!("1 I am {number}"));
        }
    })
    .await;
}

#[tokio::test]
async fn a_client_waits_while_the_mailbox_is_full_and_nothing_is_lost() {
    within(async {
        let mut rig = Rig::start(Settings::default()).await;
        let client = Client::open(&mut rig).await;
        let (mut sink, mut stream) = client.0.split();
        // 500 messages through a mailbox of 2, each with a response through an outbox that is large
        // enough.
        let sending = tokio::spawn(async move {
            for message in 0..500 {
                sink.send(Message::text(message.to_string())).await.unwrap();
            }
            sink
        });
        for message in 0..500 {
            let reply = stream.next().await.unwrap().unwrap();
            let expected = format!("{} {message}", message + 1);
            assert_eq!(reply, Message::text(expected));
        }
        drop(sending.await.unwrap());
        assert_eq!(rig.system.dead_letters().total(), 0);
    })
    .await;
}

#[tokio::test]
async fn an_actor_may_write_as_fast_as_the_client_reads() {
    within(async {
        let websocket = WebSocketSettings::default().outbox(2);
        let mut rig = Rig::start(Settings {
            websocket: websocket.slow_reader(SlowReader::Close),
            ..Settings::default()
        })
        .await;
        let mut client = Client::open(&mut rig).await;
        client.say("patient").await;
        for line in 0..500 {
            assert_eq!(number(&client.hears_text().await), Some(line));
        }
        assert_eq!(rig.hears().await, "dropped 0");
    })
    .await;
}

#[tokio::test]
async fn an_actor_that_failed_is_restarted_behind_the_same_connection() {
    within(async {
        let supervision = Supervision::one_for_one().backoff(Backoff::NONE);
        let mut rig = Rig::start(Settings {
            system: ActorSystem::builder().supervision(supervision),
            ..Settings::default()
        })
        .await;
        let mut client = Client::open(&mut rig).await;
        client.say("before").await;
        assert_eq!(client.hears_text().await, "1 before");
        assert_eq!(rig.hears().await, "before");
        client.say("panic").await;
        client.say("after").await;
        assert_eq!(rig.hears().await, "restarted");
        assert_eq!(client.hears_text().await, "1 after", "the state is new");
        assert_eq!(rig.system.dead_letters().count(Reason::Failed), 1);
        assert!(
            rig.system
                .shutdown(Duration::from_secs(30))
                .await
                .is_clean()
        );
        assert_eq!(client.hears_close().await.0, 1001);
    })
    .await;
}
