//! A master, its replica, and a Sentinel beside them.

use greenroom_bus::RedisSettings;

use crate::kit::{failure, gap, next, publish, publish_at_last, subscribe, text, until, within};
use crate::server::{Server, impatient};

const LOGIN: &str = ":secret@";

struct Group {
    master: Server,
    replica: Server,
    sentinel: Server,
}

impl Group {
    async fn start() -> Self {
        let login = ["--requirepass", "secret", "--masterauth", "secret"];
        let master = Server::start_with(&login);
        let port = master.port.to_string();
        let follow = [&login[..], &["--replicaof", "127.0.0.1", &port]].concat();
        let replica = Server::start_with(&follow);
        let link = || replica.ask_as::<String>(LOGIN, &["INFO", "replication"]);
        until(|| link().contains("master_link_status:up")).await;
        let sentinel = Server::start_sentinel(&master, "secret");
        let replicas = || sentinel.ask::<String>(&["INFO", "sentinel"]);
        until(|| replicas().contains("slaves=1")).await;
        Self {
            master,
            replica,
            sentinel,
        }
    }

    fn settings(&self) -> RedisSettings {
        let urls = [self.sentinel.url()];
        let settings = RedisSettings::sentinels(urls, "main").expect("an address");
        settings.login("default", "secret")
    }

    /// Waits for the failover. A new master closes its clients' connections just then.
    async fn failed_over(&self) {
        let role = || {
            let replica = &self.replica;
            replica.try_ask_as::<String>(LOGIN, &["INFO", "replication"])
        };
        until(|| role().is_ok_and(|role| role.contains("role:master"))).await;
    }
}

#[tokio::test]
async fn a_killed_master_is_followed_by_its_replica() {
    let mut group = Group::start().await;
    let (here, there) = (impatient(group.settings()), impatient(group.settings()));
    let mut by_name = subscribe(&there, "/a").await;
    let mut by_pattern = subscribe(&there, "/*").await;
    within(here.connected()).await;
    publish(&here, "/a", "before").await;
    assert_eq!(text(&mut by_name).await, "before");
    assert_eq!(text(&mut by_pattern).await, "before");
    group.master.kill();
    let patience = ["SENTINEL", "SET", "main", "down-after-milliseconds", "100"];
    let () = group.sentinel.ask(&patience);
    group.failed_over().await;
    gap(&mut by_name).await;
    gap(&mut by_pattern).await;
    publish_at_last(&here, "/a", "after").await;
    assert_eq!(text(&mut by_name).await, "after");
    assert_eq!(text(&mut by_pattern).await, "after");
}

#[tokio::test]
async fn a_master_that_hands_over_is_left() {
    let group = Group::start().await;
    let bus = impatient(group.settings());
    let mut subscription = subscribe(&bus, "/a").await;
    // It refuses until it knows the replica well.
    let fail_over = ["SENTINEL", "FAILOVER", "main"];
    until(|| group.sentinel.try_ask_as::<()>("", &fail_over).is_ok()).await;
    group.failed_over().await;
    // As the Sentinel does when it looks again, some ten seconds later.
    let heir = group.replica.port.to_string();
    let () = group
        .master
        .ask_as(LOGIN, &["REPLICAOF", "127.0.0.1", &heir]);
    let _: u64 = group
        .master
        .ask_as(LOGIN, &["CLIENT", "KILL", "TYPE", "pubsub"]);
    gap(&mut subscription).await;
    let subscribers = || {
        group
            .replica
            .ask_as::<(String, u64)>(LOGIN, &["PUBSUB", "NUMSUB", "/a"])
            .1
    };
    until(|| subscribers() == 1).await;
    publish_at_last(&bus, "/a", "after").await;
    while next(&mut subscription)
        .await
        .message()
        .is_none_or(|message| message.payload() != "after")
    {}
}

#[tokio::test]
async fn a_master_of_another_name_is_not_found() {
    let group = Group::start().await;
    let settings = RedisSettings::sentinels([group.sentinel.url()], "other").expect("an address");
    let error = failure(&impatient(settings)).await;
    assert!(error.contains("not found in sentinel"), "{error}");
}
