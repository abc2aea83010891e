//! Ends of connections, by either side.

use std::time::Duration;

use futures_util::SinkExt;
use greenroom_actor::web::WebSocketSettings;
use greenroom_actor::{ActorSystem, Directive, Supervision};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;

use crate::client::{Client, number};
use crate::rig::{Rig, Settings, within};

#[tokio::test]
async fn when_the_client_closes_the_actor_handles_what_it_has_and_stops() {
    within(async {
        let mut rig = Rig::start(Settings::default()).await;
        let mut client = Client::open(&mut rig).await;
        for text in ["a", "b", "c", "d", "e"] {
            client.say(text).await;
        }
        let frame = CloseFrame {
            code: 4000.into(),
            reason: "had enough".into(),
        };
        client.0.close(Some(frame)).await.unwrap();
        for text in ["a", "b", "c", "d", "e", "stopped"] {
            assert_eq!(rig.hears().await, text);
        }
        let mut last = client.hears().await;
        while !last.is_close() {
            last = client.hears().await;
        }
        let Message::Close(Some(frame)) = last else {
            panic!("the reply has the client's code");
        };
        assert_eq!(u16::from(frame.code), 4000);
        assert_eq!(rig.system.dead_letters().total(), 0);
    })
    .await;
}

#[tokio::test]
async fn when_the_actor_stops_all_it_wrote_is_sent_before_the_close() {
    within(async {
        let websocket = WebSocketSettings::default().outbox(200);
        let mut rig = Rig::start(Settings {
            websocket,
            ..Settings::default()
        })
        .await;
        let mut client = Client::open(&mut rig).await;
        client.say("burst").await;
        client.say("stop").await;
        for line in 0..100 {
            assert_eq!(client.hears_text().await, line.to_string());
        }
        assert_eq!(client.hears_text().await, "bye");
        assert_eq!(client.hears_close().await, (1000, String::new()));
        assert_eq!(rig.hears().await, "dropped 0");
        assert_eq!(rig.hears().await, "stopped");
    })
    .await;
}

#[tokio::test]
async fn the_actor_chooses_the_code() {
    within(async {
        let mut rig = Rig::start(Settings::default()).await;
        let mut client = Client::open(&mut rig).await;
        client.say("close 4001").await;
        assert_eq!(client.hears_close().await, (4001, "enough".to_owned()));
        assert_eq!(rig.hears().await, "stopped");
    })
    .await;
}

#[tokio::test]
async fn an_actor_that_fails_for_good_closes_with_1011() {
    within(async {
        let supervision = Supervision::one_for_one().always(Directive::Stop);
        let mut rig = Rig::start(Settings {
            system: ActorSystem::builder().supervision(supervision),
            ..Settings::default()
        })
        .await;
        let mut client = Client::open(&mut rig).await;
        client.say("panic").await;
        assert_eq!(client.hears_close().await.0, 1011);
    })
    .await;
}

#[tokio::test]
async fn an_actor_that_is_killed_closes_with_1011() {
    within(async {
        let mut rig = Rig::start(Settings::default()).await;
        let mut client = Client::open(&mut rig).await;
        client.say("kill").await;
        assert_eq!(client.hears_close().await.0, 1011);
    })
    .await;
}

#[tokio::test]
async fn a_message_that_is_too_long_closes_with_1009() {
    within(async {
        let websocket = WebSocketSettings::default().frame_bytes_max(1_000);
        let mut rig = Rig::start(Settings {
            websocket,
            ..Settings::default()
        })
        .await;
        let mut client = Client::open(&mut rig).await;
        client.say(&"x".repeat(1_000)).await;
        assert_eq!(client.hears_text().await.len(), 1_002);
        client.say(&"x".repeat(1_001)).await;
        let Message::Close(Some(frame)) = client.hears().await else {
            panic!("no close frame with a code");
        };
        assert_eq!(u16::from(frame.code), 1009);
        assert_eq!(rig.hears().await.len(), 1_000);
        assert_eq!(rig.hears().await, "stopped");
    })
    .await;
}

#[tokio::test]
async fn a_client_that_breaks_the_protocol_is_told_so() {
    within(async {
        // An unmasked frame, and a text that is not UTF-8 (RFC 6455, 5.1 and 8.1).
        let faults: [(&[u8], u16); 2] = [
            (&[0x81, 0x02, b'h', b'i'], 1002),
            (&[0x81, 0x81, 0, 0, 0, 0, 0xff], 1007),
        ];
        for (bytes, code) in faults {
            let mut rig = Rig::start(Settings::default()).await;
            let mut stream = Client::open(&mut rig).await.0.into_inner();
            stream.write_all(bytes).await.unwrap();
            let mut head = [0; 4];
            stream.read_exact(&mut head).await.unwrap();
            assert_eq!(head[0], 0x88, "a close frame");
            assert_eq!(u16::from_be_bytes([head[2], head[3]]), code);
            assert_eq!(rig.hears().await, "stopped");
        }
    })
    .await;
}

#[tokio::test]
async fn a_shutdown_closes_all_with_1001() {
    within(async {
        let mut rig = Rig::start(Settings::default()).await;
        let mut clients = Vec::new();
        for _ in 0..20 {
            clients.push(Client::open(&mut rig).await);
        }
        let report = rig.system.shutdown(Duration::from_secs(30)).await;
        assert!(report.is_clean(), "{report:?}");
        assert_eq!(report.actors, 20);
        for client in clients {
            let reason = "the server is shutting down".to_owned();
            assert_eq!(client.hears_close().await, (1001, reason));
        }
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn who_comes_after_the_shutdown_is_closed_too() {
    within(async {
        let rig = Rig::start(Settings::default()).await;
        rig.system.shutdown(Duration::from_secs(30)).await;
        let client = Client::ask(&rig).await.unwrap();
        assert_eq!(client.hears_close().await.0, 1001);
    })
    .await;
}

#[tokio::test]
async fn a_program_may_end_as_soon_as_the_shutdown_is_over() {
    within(async {
        let (begun, rig) = oneshot::channel();
        let (end, ended) = oneshot::channel::<()>();
        let program = std::thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let rig = Rig::start(Settings {
                    websocket: WebSocketSettings::default().outbox(400),
                    ..Settings::default()
                });
                let rig = rig.await;
                let system = rig.system.clone();
                assert!(begun.send(rig).is_ok());
                ended.await.unwrap();
                system.shutdown(Duration::from_secs(30)).await;
            });
        });
        let mut rig = rig.await.unwrap();
        let mut client = Client::open(&mut rig).await;
        client.say("bulk").await;
        assert_eq!(rig.hears().await, "dropped 0");
        end.send(()).unwrap();
        for line in 0..400 {
            assert_eq!(number(&client.hears_text().await), Some(line));
        }
        let Message::Close(Some(frame)) = client.hears().await else {
            panic!("no close frame with a code");
        };
        assert_eq!(u16::from(frame.code), 1001);
        program.join().unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_client_that_reads_nothing_does_not_hold_up_a_shutdown() {
    within(async {
        let mut rig = Rig::start(Settings::default()).await;
        let mut client = Client::open(&mut rig).await;
        client.0.send(Message::text("flood")).await.unwrap();
        assert_eq!(rig.hears().await, "refused");
        let report = rig.system.shutdown(Duration::from_millis(100)).await;
        assert!(report.is_clean(), "{report:?}");
    })
    .await;
}
