//! Nodes whose user may not do everything.

use greenroom_actor::{Actor, ActorSystem, messages};
use greenroom_cluster::{Cluster, ClusterSettings, ConnectError, Remote, RemoteError};
use greenroom_test_servers::NatsServer;

use crate::counter::{Counter, CounterRemoteMessages, LONG, spawn};

/// As `docs/cluster.md` gives it.
const USERS: &str = r#"
authorization {
    users: [
        { user: backend, password: b }
        { user: web, password: w, permissions: {
            publish: [
                "greenroom.node.*.group.images.>", "greenroom.group.images.>",
                "$KV.greenroom_nodes.>", "$JS.API.STREAM.INFO.*", "$JS.API.STREAM.MSG.GET.*",
                "$JS.API.CONSUMER.*.KV_greenroom_nodes.>", "$JS.API.CONSUMER.*.KV_greenroom_nodes",
                "$JS.ACK.KV_greenroom_nodes.>", "$JS.FC.KV_greenroom_nodes.>", "_INBOX.greenroom.>"
            ]
            subscribe: ["greenroom.node.>", "_INBOX.greenroom.>"]
        } }
    ]
}
"#;

async fn connect(server: &NatsServer, user: &str, password: &str) -> Result<Cluster, ConnectError> {
    let settings = ClusterSettings::new(&server.url()).expect("an address");
    let settings = settings.login(user, password).connect_timeout(LONG);
    Cluster::connect(settings).await
}

struct Secrets;

impl Actor for Secrets {}

#[messages(remote = "secrets.v1")]
impl Secrets {
    #[message]
    fn read(&self) -> String {
        "a secret".to_owned()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_asks_only_the_groups_that_it_may_ask() {
    let server = NatsServer::settings().jet_stream().lines(USERS).start();
    let backend = connect(&server, "backend", "b").await.expect("it may");
    let system = ActorSystem::new().expect("a system");
    let images = backend.publish("images", &spawn(&system, "images"));
    let images = images.expect("it is new");
    let secrets = backend.publish("secrets", &system.spawn(|| Secrets));
    let secrets = secrets.expect("it is new");
    images.announced().await;
    secrets.announced().await;

    let web = connect(&server, "web", "w").await.expect("it may");
    web.member_known::<Counter>("images").await;
    web.member_known::<Secrets>("secrets").await;
    let images: Remote<Counter> = web.actor("images").expect("a name");
    assert_eq!(images.name().ask().await.expect("it may ask"), "images");
    let secrets: Remote<Secrets> = web.actor("secrets").expect("a name");
    let asked = secrets
        .read()
        .timeout(std::time::Duration::from_millis(300));
    let error = asked.ask().await.expect_err("it may not ask");
    assert!(
        matches!(error, RemoteError::Late { .. } | RemoteError::Lost { .. }),
        "{error}"
    );
    assert!(
        secrets
            .read()
            .timeout(std::time::Duration::from_millis(300))
            .deliver()
            .await
            .is_err()
    );
    // It was not cut off by what it tried.
    assert_eq!(images.name().ask().await.expect("it may ask"), "images");
}

#[tokio::test]
async fn who_is_not_let_in_is_told_so() {
    let server = NatsServer::settings().jet_stream().lines(USERS).start();
    let error = connect(&server, "web", "wrong")
        .await
        .expect_err("it is wrong");
    let text = error.to_string();
    assert!(
        text.starts_with("NATS cannot be reached: ") && text.contains("authorization"),
        "{text}"
    );
}
