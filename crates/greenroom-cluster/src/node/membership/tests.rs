use async_nats::jetstream::{self, stream};
use async_nats::{ConnectOptions, Event};
use greenroom_test_servers::NatsServer;
use tokio::sync::mpsc;

use super::*;

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
