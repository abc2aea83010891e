//! Clients that leave without a word.

use std::time::Duration;

use futures_util::StreamExt;
use greenroom_actor::web::WebSocketSettings;
use greenroom_actor::{ActorSystem, Dispatcher};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio_tungstenite::tungstenite::Message;

use crate::client::{Client, Stream};
use crate::rig::{Rig, Settings, within};

fn timing(ping: Duration, silence: Duration) -> Settings {
    let websocket = WebSocketSettings::default().ping_interval(ping);
    Settings {
        websocket: websocket.silence_max(silence),
        ..Settings::default()
    }
}

#[tokio::test]
async fn a_socket_that_is_shut_without_a_close_frame_stops_the_actor() {
    within(async {
        let mut rig = Rig::start(Settings::default()).await;
        let mut client = Client::open(&mut rig).await;
        client.say("one").await;
        drop(client);
        assert_eq!(rig.hears().await, "one");
        assert_eq!(rig.hears().await, "stopped");
    })
    .await;
}

#[tokio::test]
async fn a_socket_that_says_nothing_any_more_is_closed() {
    within(async {
        let (ping, silence) = (Duration::from_millis(20), Duration::from_millis(200));
        let mut rig = Rig::start(timing(ping, silence)).await;
        let mut stream = Client::open(&mut rig).await.0.into_inner();
        // The client does not reply to pings.
        assert_eq!(rig.hears().await, "stopped");
        let mut bytes = Vec::new();
        while !bytes.ends_with(&1008_u16.to_be_bytes()) {
            bytes.push(stream.read_u8().await.unwrap());
        }
        let pings = bytes.len() - 4;
        assert!(pings >= 2, "a ping");
        assert_eq!(
            bytes[..pings].chunks(2).collect::<Vec<_>>(),
            vec![[0x89, 0x00]; pings / 2]
        );
        assert_eq!(bytes[pings], 0x88, "and a close frame");
    })
    .await;
}

#[tokio::test]
async fn a_client_that_replies_to_pings_stays() {
    within(async {
        let (ping, silence) = (Duration::from_millis(40), Duration::from_millis(1_200));
        let mut rig = Rig::start(timing(ping, silence)).await;
        let mut client = Client::open(&mut rig).await;
        // Twice the silence that would be too long.
        for _ in 0..60 {
            let message = client.0.next().await.unwrap().unwrap();
            assert!(matches!(message, Message::Ping(_)), "{message:?}");
        }
        client.say("still here").await;
        assert_eq!(client.hears_text().await, "1 still here");
    })
    .await;
}

#[tokio::test]
async fn a_client_stays_that_sends_a_long_message_slowly() {
    within(async {
        let (ping, silence) = (Duration::from_millis(40), Duration::from_millis(1_200));
        let mut rig = Rig::start(timing(ping, silence)).await;
        let mut stream = Client::open(&mut rig).await.0.into_inner();
        // A text of 60 bytes, masked by zeros. Before its end no ping can be replied to.
        stream
            .write_all(&[0x81, 0x80 + 60, 0, 0, 0, 0])
            .await
            .unwrap();
        // A byte with each ping: twice the silence that would be too long.
        for _ in 0..60 {
            let mut ping = [0; 2];
            stream.read_exact(&mut ping).await.unwrap();
            assert_eq!(ping, [0x89, 0x00], "a ping");
            stream.write_all(b"x").await.unwrap();
        }
        assert_eq!(rig.hears().await, "x".repeat(60));
    })
    .await;
}

#[tokio::test]
async fn a_runtime_that_ends_takes_its_connections_along_but_not_their_actors() {
    within(async {
        let (begun, rig) = oneshot::channel();
        let (end, ended) = oneshot::channel::<()>();
        let server = std::thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let system = ActorSystem::builder().dispatcher("default", Dispatcher::pool(1));
                let rig = Rig::start(Settings {
                    system,
                    ..Settings::default()
                });
                assert!(begun.send(rig.await).is_ok());
                ended.await.unwrap();
            });
        });
        let mut rig = rig.await.unwrap();
        let _client = Client::open(&mut rig).await;
        let _stream = Stream::open(&mut rig).await;
        end.send(()).unwrap();
        server.join().unwrap();
        assert_eq!(rig.hears().await, "stopped");
        assert_eq!(rig.hears().await, "stopped");
    })
    .await;
}

#[tokio::test]
async fn a_client_that_is_written_to_all_the_time_is_sent_pings_too() {
    within(async {
        let websocket = WebSocketSettings::default()
            .ping_interval(Duration::from_millis(10))
            .outbox(400);
        let mut rig = Rig::start(Settings {
            websocket,
            ..Settings::default()
        })
        .await;
        let mut client = Client::open(&mut rig).await;
        client.say("bulk").await;
        assert_eq!(rig.hears().await, "dropped 0");
        let (mut texts, mut pings) = (0, 0);
        // By then the outbox was never empty.
        while texts < 100 {
            match client.0.next().await.unwrap().unwrap() {
                Message::Text(_) => texts += 1,
                Message::Ping(_) if texts > 0 => pings += 1,
                Message::Ping(_) => {}
                other => panic!("got {other:?}"),
            }
        }
        assert!(pings > 0);
    })
    .await;
}
