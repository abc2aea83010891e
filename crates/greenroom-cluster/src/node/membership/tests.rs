use async_nats::jetstream::{self, stream};
use async_nats::{ConnectOptions, Event};
use greenroom_test_servers::NatsServer;
use tokio::sync::mpsc;

use super::*;
use crate::nats::Subjects;
use crate::settings::Limits;

#[tokio::test]
async fn a_node_that_does_not_hear_of_itself_connects_anew() {
    let server = NatsServer::settings().jet_stream().start();
    let (sender, mut events) = mpsc::unbounded_channel();
    let options = ConnectOptions::new().event_callback(move |event| {
        // The test may have ended.
        let _ = sender.send(event);
        std::future::ready(())
    });
    let client = options.connect(server.url()).await.expect("it runs");
    let jetstream = jetstream::new(client.clone());
    let config = stream::Config {
        name: "KV_nodes".to_owned(),
        subjects: vec!["$KV.nodes.>".to_owned()],
        max_messages_per_subject: 1,
        ..Default::default()
    };
    jetstream.create_stream(config).await.expect("it is new");
    let bucket = jetstream.get_key_value("nodes").await;
    let bucket = bucket.expect("it is there");
    let watcher = Watcher {
        client,
        bucket: bucket.clone(),
        table: Arc::new(Table::new(1)),
        me: NodeId::random(),
        lease: Duration::from_millis(100),
    };
    let following = tokio::spawn(watcher.follow());
    // What another node writes is not its own.
    let record = serde_json::to_vec(&Record::default()).expect("JSON");
    let other = NodeId::random();
    let written = bucket.put(other.as_str(), record.into()).await;
    written.expect("it is taken");
    let mut connections = 0;
    while connections < 2 {
        let event = events.recv().await.expect("the client lives");
        connections += usize::from(matches!(event, Event::Connected));
    }
    following.abort();
}

const LEASE: Duration = Duration::from_mins(1);

/// Returns a server with empty stores, and a node that has not joined.
async fn begin() -> (NatsServer, Stores, Membership) {
    let server = NatsServer::settings().jet_stream().start();
    let client = async_nats::connect(server.url()).await.expect("it runs");
    let limits = Limits {
        lease: LEASE,
        ..Limits::default()
    };
    let subjects = Subjects::new(&limits.prefix);
    let stores = Box::pin(Stores::open(&client, &subjects, &limits)).await;
    let stores = stores.expect("they are new");
    (server, stores, Membership::new(NodeId::random(), LEASE))
}

#[tokio::test]
async fn a_removed_record_is_not_written_again() {
    let (_server, stores, me) = begin().await;
    let record = Record::default();
    // The second begins while the first is under way.
    let (written, ()) = tokio::join!(me.write(&stores, &record), me.remove(&stores.nodes));
    written.expect("it came first");
    assert!(
        me.until
            .borrow()
            .is_some_and(|until| until <= Instant::now())
    );
    let error = me.write(&stores, &record).await.expect_err("it has left");
    assert!(matches!(error, WriteError::Left), "{error}");
    let record = stores.nodes.get(me.me.as_str()).await.expect("a look");
    assert_eq!(record, None);
}

#[tokio::test]
async fn a_record_does_not_come_back_under_another_lease() {
    let (_server, stores, me) = begin().await;
    let record = Record::default();
    me.write(&stores, &record)
        .await
        .expect("the bucket is ours");
    let info = stores.nodes.stream.get_info().await.expect("a look");
    let shorter = stream::Config {
        max_age: LEASE / 2,
        duplicate_window: LEASE / 2,
        ..info.config
    };
    // As another node does, once this one's record has ended.
    stores
        .nodes
        .delete(me.me.as_str())
        .await
        .expect("it is there");
    stores
        .jetstream
        .update_stream(shorter)
        .await
        .expect("it may");
    me.until.send_replace(Some(Instant::now()));
    let error = me.write(&stores, &record).await.expect_err("it is shorter");
    assert!(matches!(error, WriteError::Lease(_)), "{error}");
    let record = stores.nodes.get(me.me.as_str()).await.expect("a look");
    assert_eq!(record, None);
}
