//! Requests that a client is not allowed.

use serde_json::json;
use social::config::FeedSettings;
use social::model::{Id, topic};
use tokio_tungstenite::tungstenite::Message;

use super::client::{Client, ServerMessage};
use super::world::World;
use greenroom::bus::Bus;

async fn refused(client: &mut Client) -> Vec<(String, String)> {
    let received = client.next_message().await;
    let ServerMessage::Rejected(reasons) = received else {
        panic!("not refused: {received:?}")
    };
    let mut reasons: Vec<_> = reasons.into_iter().collect();
    reasons.sort();
    reasons
}

#[tokio::test]
async fn a_bell_rings_for_its_user_only() {
    let world = World::new().await;
    let replica = world.replica().await;
    let (me, you) = (world.user().await, Id::new());
    let (mine, yours) = (topic::bell(me), topic::bell(you));

    let mut client = replica.client_of(me).await;
    client
        .say(&json!({"watch": {&mine: null, &yours: null}}))
        .await;
    let reasons = refused(&mut client).await;
    assert_eq!(
        reasons,
        [(
            yours.clone(),
            "only the user themself may watch it".to_owned()
        )]
    );
    let received = client.next_message().await;
    assert!(matches!(received, ServerMessage::At(at) if at.len() == 1 && at[&mine] == 0));
    replica.happen(&yours, 1).await;
    replica.happen(&mine, 1).await;
    client.read_to(&mine, 1).await;

    let mut nobody = replica.client().await;
    nobody.say(&json!({"watch": {&mine: 0}})).await;
    assert_eq!(refused(&mut nobody).await.len(), 1);
}

#[tokio::test]
async fn what_is_no_topic_is_refused_and_the_rest_goes_on() {
    let world = World::new().await;
    let replica = world.replica().await;
    let mut client = replica.client().await;
    client
        .say(&json!({"watch": {"/cache/invalidate": 0, "/picture/**": null}}))
        .await;
    let reasons = refused(&mut client).await;
    assert!(
        reasons
            .iter()
            .all(|(_, reason)| reason.starts_with("topics are /timeline,")),
        "{reasons:?}"
    );
    assert_eq!(reasons.len(), 2);
    client.watch(topic::TIMELINE, None).await;
    replica.happen(topic::TIMELINE, 1).await;
    client.read_to(topic::TIMELINE, 1).await;
}

#[tokio::test]
async fn a_client_watches_so_many_topics_and_no_more() {
    let world = World::new().await;
    let settings = FeedSettings {
        topics_max: 2,
        ..FeedSettings::default()
    };
    let replica = world.replica_with(&Bus::in_process(), settings).await;
    let mut client = replica.client().await;
    let (one, two) = (topic::likes(Id::new()), topic::likes(Id::new()));
    client.watch(&one, None).await;
    client.watch(&two, None).await;
    client.say(&json!({"watch": {topic::TIMELINE: null}})).await;
    let reasons = refused(&mut client).await;
    assert_eq!(
        reasons,
        [(
            topic::TIMELINE.to_owned(),
            "a client may watch 2 topics".to_owned()
        )]
    );
    client.say(&json!({"unwatch": [&one]})).await;
    client.watch(topic::TIMELINE, None).await;
}

#[tokio::test]
async fn what_is_not_of_the_protocol_closes_the_connection() {
    let world = World::new().await;
    let replica = world.replica().await;
    let long = format!(r#"{{"unwatch":["{}"]}}"#, "x".repeat(16 * 1024));
    let cases = [
        (Message::binary(vec![1, 2, 3]), 1003),
        (Message::text("{"), 1007),
        (Message::text(r#"{"watch":{"/timeline":-1}}"#), 1007),
        (Message::text(r#"{"wätch":{}}"#), 1007),
        (Message::text(long), 1009),
    ];
    for (message, code) in cases {
        let mut client = replica.client().await;
        client.send(message.clone()).await;
        assert_eq!(client.closed().await, code, "{message:?}");
    }
}

#[tokio::test]
async fn who_does_nothing_but_talk_is_sent_away() {
    let world = World::new().await;
    let replica = world.replica().await;
    let mut client = replica.client().await;
    for _ in 0..1_001 {
        client.say(&json!({})).await;
    }
    assert_eq!(client.closed().await, 1008);
}

#[tokio::test]
async fn a_shutdown_says_so() {
    let world = World::new().await;
    let replica = world.replica().await;
    let mut client = replica.client().await;
    client.watch(topic::TIMELINE, None).await;
    let (code, ()) = tokio::join!(client.closed(), replica.shut_down());
    assert!([1001, 1012].contains(&code), "{code}");
}
