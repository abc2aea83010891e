//! A server that is killed, hangs, or is not there.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use mongodb::bson::{Document, doc};
use social::model::{Comment, Id, Picture, TaskKind, User, topic};
use social::store::{Store, StoreError, mongo as adaptor};

use crate::kit::{ferretdb::FerretDb, port};
use crate::sample::{
    comment, event, events, in_seconds, insert_picture, like_effects, now, seqs, task,
};
use crate::{open, raw, wait_for, wait_for_the_sweeper};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_not_there_is_named() {
    let url = format!("mongodb://127.0.0.1:{}/social", port::free_port());
    let opened = adaptor::open(&url.parse().expect("it is a URL")).await;
    let Err(StoreError::Unavailable(source)) = opened else {
        panic!("{opened:?}");
    };
    assert!(source.to_string().contains("127.0.0.1"), "{source}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_url_without_a_database_means_social() {
    let server = FerretDb::start().await;
    let mut url = server.url("");
    let store = adaptor::open(&url).await.expect("the server responds");
    let (owner, _, _) = insert_picture(&*store).await;
    url.set_path("/social");
    let same = adaptor::open(&url).await.expect("the server responds");
    assert_eq!(same.user(owner.id).await.expect("found"), Some(owner));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_hangs_is_not_waited_for() {
    let server = FerretDb::start().await;
    let store = open(&server.url("social")).await;
    server.signal("STOP");
    let results = join_all([store.ping(), store.ping()]).await;
    server.signal("CONT");
    for result in results {
        assert!(
            matches!(result, Err(StoreError::Unavailable(_))),
            "{result:?}"
        );
    }
    wait_for("the server", async || store.ping().await.is_ok()).await;
}

/// Nothing that was claimed before waits for a lease to end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_that_are_claimed_when_the_server_hangs_are_returned() {
    const MANY: u32 = 300;
    let server = FerretDb::start().await;
    let mut url = server.url("social");
    url.query_pairs_mut().append_pair("timeoutMS", "10000");
    let store = open(&url).await;
    let database = raw(&server).await;
    let new = (0..MANY).map(|number| task(&number.to_string(), TaskKind::Mail, now()));
    store.add_tasks(new.collect()).await.expect("added");
    let lease = Duration::from_mins(1);
    let claiming = store.claim_tasks(TaskKind::Mail, in_seconds(1), lease, MANY);
    let hanging = async {
        let claimed = database.collection::<Document>("tasks");
        wait_for("a few claims", async || {
            let noted = claimed.count_documents(doc! { "attempts": 1 }).await;
            noted.expect("the server responds") >= 3
        })
        .await;
        server.signal("STOP");
    };
    let (claimed, ()) = tokio::join!(claiming, hanging);
    server.signal("CONT");
    let claimed = claimed.expect("some are claimed");
    assert!(claimed.len() >= 2, "{}", claimed.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_when_the_server_is_killed() {
    let mut server = FerretDb::start().await;
    let store = open(&server.url("social")).await;
    let (owner, _, picture) = insert_picture(&*store).await;
    let acknowledged = Arc::new(AtomicUsize::new(0));
    let writers: Vec<_> = (0..8)
        .map(|_| {
            let (store, acknowledged) = (Arc::clone(&store), Arc::clone(&acknowledged));
            tokio::spawn(write_until_it_fails(
                store,
                owner.clone(),
                picture.clone(),
                acknowledged,
            ))
        })
        .collect();
    wait_for("writes", async || acknowledged.load(Ordering::Relaxed) > 40).await;
    server.kill();
    let mut written = Vec::new();
    for writer in join_all(writers).await {
        written.extend(writer.expect("it ended well"));
    }
    server.restart().await;
    wait_for("the server", async || store.ping().await.is_ok()).await;
    wait_for_the_sweeper(&raw(&server).await).await;
    assert_whole(&*store, &picture, &written).await;
}

/// Likes and comments until it fails; returns the acknowledged changes.
async fn write_until_it_fails(
    store: Arc<dyn Store>,
    author: User,
    picture: Picture,
    acknowledged: Arc<AtomicUsize>,
) -> Vec<(Option<Id>, Option<Comment>)> {
    let mut written = Vec::new();
    loop {
        let fan = Id::new();
        let said = comment(picture.id, &author, "nice");
        let topic = topic::comments(picture.id);
        let effects = events(vec![event(&topic, &said.id.to_string(), 1)]);
        let liked = store
            .set_like(picture.id, fan, true, like_effects(&picture, true))
            .await;
        let inserted = store.insert_comment(&said, effects).await;
        let failed = liked.is_err() || inserted.is_err();
        written.push((liked.ok().map(|_| fan), inserted.ok().map(|_| said)));
        if failed {
            return written;
        }
        acknowledged.fetch_add(1, Ordering::Relaxed);
    }
}

async fn assert_whole(
    store: &dyn Store,
    picture: &Picture,
    written: &[(Option<Id>, Option<Comment>)],
) {
    for (fan, _) in written {
        let Some(fan) = fan else { continue };
        let liked = store.liked(*fan, &[picture.id]).await.expect("likes");
        assert_eq!(liked, [picture.id], "an acknowledged like is lost");
    }
    let comments = store
        .comments(picture.id, None, 10_000)
        .await
        .expect("comments");
    for comment in written.iter().filter_map(|(_, comment)| comment.as_ref()) {
        assert!(
            comments.contains(comment),
            "an acknowledged comment is lost"
        );
    }
    let log = store
        .events(&topic::comments(picture.id), 0, 10_000)
        .await
        .expect("a log");
    assert_eq!(
        seqs(&log),
        (1..=comments.len() as u64).collect::<Vec<u64>>()
    );
    let delivered: HashSet<String> = log
        .iter()
        .map(|event| event.body["key"].to_string())
        .collect();
    let said = comments.iter().map(|comment| format!("\"{}\"", comment.id));
    assert_eq!(
        delivered,
        said.collect(),
        "each comment has its event, and each event its comment"
    );

    let likes = store
        .events(&topic::likes(picture.id), 0, 10_000)
        .await
        .expect("a log");
    assert_eq!(seqs(&likes), (1..=likes.len() as u64).collect::<Vec<u64>>());
    let acknowledged = written.iter().filter(|(fan, _)| fan.is_some()).count();
    assert!(
        likes.len() >= acknowledged,
        "an acknowledged like was not delivered"
    );
    let bell = store
        .events(&topic::bell(picture.owner.id), 0, 10_000)
        .await
        .expect("a log");
    assert_eq!(bell.len(), likes.len(), "a like has both of its events");
}
