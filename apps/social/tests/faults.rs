//! A network under load, a part of which is killed: every acknowledged write is there afterwards,
//! once.

#[path = "kit/mod.rs"]
mod kit;
mod faults {
    pub(crate) mod client;
    pub(crate) mod disk;
    pub(crate) mod leftovers;
    pub(crate) mod load;
    pub(crate) mod mails;
    pub(crate) mod network;
    pub(crate) mod replica;
    pub(crate) mod verify;
    pub(crate) mod watcher;
}

use std::sync::atomic::Ordering;

use faults::disk::SmallDisk;
use faults::leftovers::Uploads;
use faults::network::Network;

/// Changes before the fault, meanwhile, and afterwards.
const CHANGES: u64 = 60;

#[tokio::test]
async fn a_killed_replica_loses_nothing() {
    let mut network = Network::start(2).await;
    let work = network.work().await;
    work.load.more(CHANGES).await;
    network.replicas[0].kill();
    work.load.more(CHANGES).await;
    network.replicas[0].restart().await;
    work.load.more(CHANGES).await;
    assert!(
        network.client.broken.load(Ordering::Relaxed) > 0,
        "nobody met the fault"
    );
    network.check(work).await;
}

#[tokio::test]
async fn a_killed_server_leaves_no_files_behind() {
    let mut uploads = Uploads::start().await;
    uploads.kill_during_an_upload().await;
    uploads.age();
    uploads.replica.restart().await;
    uploads.until_swept().await;
}

#[tokio::test]
async fn a_killed_redis_loses_nothing() {
    let mut network = Network::start(2).await;
    let work = network.work().await;
    work.load.more(CHANGES).await;
    network.foreign().redis.kill();
    work.load.more(CHANGES).await;
    network.foreign().redis.restart().await;
    work.load.more(CHANGES).await;
    network.check(work).await;
}

#[tokio::test]
async fn a_killed_database_loses_nothing_that_was_acknowledged() {
    let mut network = Network::start(2).await;
    let work = network.work().await;
    work.load.more(CHANGES).await;
    network.foreign().database.kill();
    network.client.until_unavailable(10).await;
    network.foreign().database.restart().await;
    work.load.more(CHANGES).await;
    network.check(work).await;
}

#[tokio::test]
async fn a_killed_mail_server_loses_no_mail() {
    let mut network = Network::start(2).await;
    let work = network.work().await;
    work.load.more(CHANGES).await;
    network.mails.kill();
    work.load.more(CHANGES).await;
    network.mails.restart();
    work.load.more(CHANGES).await;
    network.check(work).await;
}

#[tokio::test]
async fn a_full_disk_is_told_and_loses_nothing() {
    let disk = SmallDisk::mount(24);
    let mut network = Network::embedded(disk.path()).await;
    let work = network.work().await;
    work.load.more(CHANGES).await;
    disk.fill();
    network.client.until_unavailable(10).await;
    let timeline = network.client.get("/api/timeline").await;
    assert!(
        !timeline["pictures"]
            .as_array()
            .expect("a page has pictures")
            .is_empty(),
        "reads go on"
    );
    disk.make_room();
    work.load.more(CHANGES).await;
    network.replicas[0].kill();
    network.replicas[0].restart().await;
    network.check(work).await;
}
