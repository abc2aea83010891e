//! Other programs, which see the messages of NATS.

use async_nats::client::RequestErrorKind;
use async_nats::{Client, HeaderMap, Message};
use bytes::Bytes;
use futures_util::StreamExt as _;
use greenroom_cluster::serde::Serialize;

use crate::counter::{BEGUN, CounterRemoteMessages, GATES, LONG, caller, host, server};

const TIMEOUT: &str = "Greenroom-Timeout";

#[derive(Serialize)]
#[serde(crate = "greenroom_cluster::serde")]
struct Add {
    amount: u64,
}

#[derive(Serialize)]
#[serde(crate = "greenroom_cluster::serde")]
struct Wait {
    gate: usize,
}

/// Asks the group, from when the servers have the subscription of its member.
async fn ask(client: &Client, message: &str, payload: &[u8], headers: Option<HeaderMap>) -> Bytes {
    let subject = format!("greenroom.group.counters.{message}.counter.v1");
    loop {
        let mut request = async_nats::Request::new().payload(payload.to_vec().into());
        request.headers = headers.clone();
        let asked = client.send_request(subject.clone(), request.timeout(Some(LONG)));
        match asked.await {
            Ok(reply) => return reply.payload,
            Err(error) => assert_eq!(error.kind(), RequestErrorKind::NoResponders),
        }
    }
}

fn timeout(message: &Message) -> Option<u64> {
    let headers: &HeaderMap = message.headers.as_ref()?;
    let millis = headers.get(TIMEOUT).expect("the only one").as_str();
    Some(millis.parse().expect("a number"))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ask_with_the_default_deadline_has_no_headers() {
    let server = server();
    let _host = host(&server, "one").await;
    let (_node, counters) = caller(&server).await;
    let client = async_nats::connect(server.url()).await.expect("a client");
    let seen = client.subscribe("greenroom.node.*.group.counters.>").await;
    let mut seen = seen.expect("a subscription");
    // Once its own message is back, the server has the subscription.
    let own = "greenroom.node.none.group.counters.own";
    client.publish(own, "".into()).await.expect("it is sent");
    seen.next().await.expect("a message");
    // On a slow machine a millisecond may be over before an ask is sent; then it is said.
    loop {
        counters.add(1).ask().await.expect("a reply");
        let message = seen.next().await.expect("a message");
        match timeout(&message) {
            None => break,
            Some(left) => assert!(left < 5_000, "{left}"),
        }
    }
    let asked = counters.add(1).timeout(LONG).ask().await;
    asked.expect("a reply");
    let message = seen.next().await.expect("a message");
    let left = timeout(&message).expect("a deadline of its own");
    assert!((50_000..=60_000).contains(&left), "{left}");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_program_asks_with_a_deadline_or_without() {
    let server = server();
    let _host = host(&server, "one").await;
    let client = async_nats::connect(server.url()).await.expect("a client");
    let add = rmp_serde::to_vec_named(&Add { amount: 2 }).expect("it can be encoded");
    let mut with_deadline = HeaderMap::new();
    with_deadline.insert(TIMEOUT, "2000");
    for (headers, sum) in [(None, 2), (Some(with_deadline), 4)] {
        let reply = ask(&client, "add", &add, headers).await;
        let reply: u64 = rmp_serde::from_slice(&reply).expect("a number");
        assert_eq!(reply, sum);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_program_gets_the_reply_of_a_member_that_has_left() {
    let server = server();
    let host = host(&server, "one").await;
    let client = async_nats::connect(server.url()).await.expect("a client");
    let wait = rmp_serde::to_vec_named(&Wait { gate: 2 }).expect("it can be encoded");
    let asked = tokio::spawn(async move { ask(&client, "wait", &wait, None).await });
    let begun = BEGUN[2].acquire().await;
    begun.expect("it is open").forget();
    drop(host.publication);
    GATES[2].add_permits(1);
    let reply = asked.await.expect("it runs");
    let name: String = rmp_serde::from_slice(&reply).expect("a name");
    assert_eq!(name, "one");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_is_found_among_many_that_died() {
    let server = server();
    let _host = host(&server, "one").await;
    let (_node, counters) = caller(&server).await;
    let client = async_nats::connect(server.url()).await.expect("a client");
    let jetstream = async_nats::jetstream::new(client);
    let nodes = jetstream.get_key_value("greenroom_nodes").await;
    let nodes = nodes.expect("a bucket");
    // Records of those that died a moment ago.
    let record = r#"{"name": "dead", "groups": [{"group": "counters", "actor": "counter.v1"}]}"#;
    for dead in 0..20 {
        let written = nodes.put(format!("dead{dead}"), record.into()).await;
        written.expect("it is taken");
    }
    for _ in 0..50 {
        counters.add(1).ask().await.expect("a reply");
    }
}
