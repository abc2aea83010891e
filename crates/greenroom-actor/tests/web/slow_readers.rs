//! Clients that read slower than the actor writes.

use greenroom_actor::web::{SlowReader, WebSocketSettings};
use tokio_tungstenite::tungstenite::Message;

use crate::client::{Client, number};
use crate::rig::{Rig, Settings, within};

fn outbox(messages: usize, slow_reader: SlowReader) -> Settings {
    let websocket = WebSocketSettings::default().outbox(messages);
    Settings {
        websocket: websocket.slow_reader(slow_reader),
        ..Settings::default()
    }
}

#[tokio::test]
async fn the_oldest_are_dropped_and_counted() {
    within(async {
        let mut rig = Rig::start(outbox(4, SlowReader::DropOldest)).await;
        let mut client = Client::open(&mut rig).await;
        client.say("burst").await;
        assert_eq!(rig.hears().await, "dropped 96");
        for line in 96..100 {
            assert_eq!(client.hears_text().await, line.to_string());
        }
        client.say("goes on").await;
        assert_eq!(client.hears_text().await, "2 goes on");
    })
    .await;
}

#[tokio::test]
async fn a_client_that_reads_late_gets_the_newest_in_order() {
    within(async {
        let mut rig = Rig::start(outbox(4, SlowReader::DropOldest)).await;
        let mut client = Client::open(&mut rig).await;
        client.say("flood").await;
        assert_eq!(rig.hears().await, "dropping");
        let mut lines = Vec::new();
        loop {
            let text = client.hears_text().await;
            if text == "last" {
                break;
            }
            lines.extend(number(&text));
        }
        assert!(lines.is_sorted());
        let missing = lines[lines.len() - 1] + 1 - u32::try_from(lines.len()).unwrap();
        assert!(missing > 0, "some were dropped");
    })
    .await;
}

#[tokio::test]
async fn a_client_that_reads_too_slowly_is_closed_and_its_actor_stopped_at_once() {
    within(async {
        let mut rig = Rig::start(outbox(4, SlowReader::Close)).await;
        let mut client = Client::open(&mut rig).await;
        client.say("flood").await;
        assert_eq!(rig.hears().await, "refused");
        assert_eq!(rig.hears().await, "stopped");
        // Frames that were on their way already come first, without a gap.
        let mut expected = 0;
        loop {
            match client.hears().await {
                Message::Text(text) => assert_eq!(number(&text), Some(expected)),
                Message::Close(Some(frame)) => {
                    assert_eq!(u16::from(frame.code), 1008);
                    break;
                }
                other => panic!("got {other:?}"),
            }
            expected += 1;
        }
        assert!(expected > 4);
    })
    .await;
}

#[tokio::test]
async fn too_much_at_once_closes_too() {
    within(async {
        let mut rig = Rig::start(outbox(99, SlowReader::Close)).await;
        let mut client = Client::open(&mut rig).await;
        client.say("burst").await;
        assert_eq!(rig.hears().await, "dropped 99");
        assert_eq!(rig.hears().await, "stopped");
        assert_eq!(client.hears_close().await.0, 1008);
    })
    .await;
}
