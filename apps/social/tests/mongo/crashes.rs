//! A killed replica's remains: documents are written as it would have, up to some step.

use mongodb::Database;
use mongodb::bson::{Document, doc};
use social::model::{Head, Id, Picture, TaskKind, Ticket, TicketPurpose, User, UserChange, topic};
use social::store::PicturesOf;

use crate::kit::ferretdb::FerretDb;
use crate::sample::{
    self, claim, comment, in_seconds, insert_album, insert_picture, insert_picture_of, keys,
};
use crate::{open, raw, wait_for, wait_for_the_sweeper};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_that_was_made_gets_its_effects_once() {
    let server = FerretDb::start().await;
    let store = open(&server.url("social")).await;
    let (owner, _, picture) = insert_picture(&*store).await;
    drop(store);

    let database = raw(&server).await;
    let said = comment(picture.id, &owner, "said, and then the power went");
    let topics = [topic::comments(picture.id), topic::bell(owner.id)];
    let intent = intent("insert_comment", &said.id.to_string(), picture.id, &topics);
    insert(&database, "intents", intent.clone()).await;
    insert(&database, "comments", primary(&intent, record(&said))).await;
    insert(&database, "events", event(&intent, &topics[0])).await;

    let store = open(&server.url("social")).await;
    wait_for_the_sweeper(&database).await;
    for topic in &topics {
        let log = store.events(topic, 0, 10).await.expect("a log");
        assert_eq!(sample::seqs(&log), [1], "{topic}");
    }
    let heads = store.heads(&topics).await.expect("heads");
    assert!(
        heads
            .values()
            .all(|head| *head == Head { seq: 1, total: 1 }),
        "{heads:?}"
    );
    let tasks = claim(&*store, TaskKind::Push, in_seconds(1)).await;
    assert_eq!(keys(&tasks), ["push:left-behind"]);
    assert_eq!(store.comment(said.id).await.expect("found"), Some(said));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_that_was_not_made_has_no_effects() {
    let server = FerretDb::start().await;
    let store = open(&server.url("social")).await;
    let (owner, _, picture) = insert_picture(&*store).await;
    drop(store);

    let database = raw(&server).await;
    let topics = [topic::comments(picture.id)];
    let never = intent(
        "insert_comment",
        &Id::new().to_string(),
        picture.id,
        &topics,
    );
    insert(&database, "intents", never.clone()).await;
    let said = comment(picture.id, &owner, "made");
    let made = intent(
        "insert_comment",
        &said.id.to_string(),
        picture.id,
        &[topic::TIMELINE.to_owned()],
    );
    insert(&database, "intents", made.clone()).await;
    insert(&database, "comments", primary(&made, record(&said))).await;

    let store = open(&server.url("social")).await;
    wait_for("the effects of the other change", async || {
        let log = store.events(topic::TIMELINE, 0, 10).await;
        !log.expect("a log").is_empty()
    })
    .await;
    assert_eq!(store.events(&topics[0], 0, 10).await.expect("a log"), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_picture_whose_upload_was_not_finished_is_taken_back() {
    let server = FerretDb::start().await;
    let store = open(&server.url("social")).await;
    let owner = sample::insert_user(&*store, "owner").await;
    let album = insert_album(&*store, &owner).await;
    let kept = insert_picture_of(&*store, &album).await;
    drop(store);

    let database = raw(&server).await;
    let half = sample::picture(&album);
    let intent = intent("insert_picture", &half.id.to_string(), album.id, &[]);
    insert(&database, "intents", intent.clone()).await;
    insert(&database, "pictures", primary(&intent, record(&half))).await;

    let store = open(&server.url("social")).await;
    wait_for_the_sweeper(&database).await;
    let pictures = store.pictures(PicturesOf::Everybody, None, 10).await;
    assert_eq!(pictures.expect("pictures"), [kept]);
    let tasks = claim(&*store, TaskKind::Remove, in_seconds(1)).await;
    assert_eq!(keys(&tasks), [format!("remove-picture:{}", half.id)]);
}

/// The server hangs while it takes the pictures of an upload, and the last one comes later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_pictures_of_an_upload_that_was_not_finished_are_taken_back() {
    let server = FerretDb::start().await;
    let store = open(&server.url("social")).await;
    let owner = sample::insert_user(&*store, "owner").await;
    let album = insert_album(&*store, &owner).await;
    let database = raw(&server).await;
    let upload = [(); 3].map(|()| sample::picture(&album));
    let ids: Vec<_> = upload
        .iter()
        .map(|picture| picture.id.to_string())
        .collect();
    let mut intent = intent("insert_picture", &ids[0], album.id, &[]);
    intent.insert("others", ids[1..].to_vec());
    insert(&database, "intents", intent.clone()).await;
    let come = async |number: usize| {
        let mut primary = primary(&intent, record(&upload[number]));
        primary.insert("_id", &ids[number]);
        insert(&database, "pictures", primary).await;
    };
    let shown = async || {
        let pictures = store.pictures(PicturesOf::Everybody, None, 10).await;
        pictures.expect("pictures").len()
    };
    for number in [0, 1] {
        come(number).await;
    }
    wait_for("the sweeper", async || shown().await == 0).await;
    come(2).await;
    wait_for_the_sweeper(&database).await;
    assert_eq!(shown().await, 0);
    let tasks = claim(&*store, TaskKind::Remove, in_seconds(1)).await;
    assert_eq!(tasks.len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ticket_that_was_left_behind_sets_no_other_password() {
    let server = FerretDb::start().await;
    let store = open(&server.url("social")).await;
    let ada = sample::insert_user(&*store, "ada").await;
    let ticket = Ticket {
        token_hash: "one".to_owned(),
        user: ada.id,
        purpose: TicketPurpose::ResetPassword,
        email: ada.email.clone(),
        generation: ada.generation,
        expires_at: in_seconds(60),
    };
    let reset = async |password: &str| {
        store.insert_ticket(&ticket).await.expect("kept");
        let change = UserChange {
            password: Some(password.to_owned()),
            ends_sessions: true,
            ..UserChange::default()
        };
        let changed = store.use_ticket(&ticket, change, Vec::new()).await;
        changed.expect("asked").map(|user| user.password)
    };
    assert_eq!(reset("first").await.as_deref(), Some("first"));
    assert_eq!(reset("second").await, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_deletion_of_an_album_is_completed() {
    let server = FerretDb::start().await;
    let store = open(&server.url("social")).await;
    let (_, album, picture) = insert_picture(&*store).await;
    drop(store);

    let database = raw(&server).await;
    let tombstone = format!("album:{}", album.id);
    let intent = intent("delete_album", &tombstone, album.id, &[]);
    insert(&database, "intents", intent.clone()).await;
    insert(
        &database,
        "tombstones",
        primary(&intent, doc! { "at": 0_i64 }),
    )
    .await;

    let store = open(&server.url("social")).await;
    wait_for_the_sweeper(&database).await;
    assert_eq!(store.album(album.id).await.expect("gone"), None);
    assert_eq!(store.picture(picture.id).await.expect("gone"), None);
    let removed = store.removed_pictures(album.id, 10).await;
    assert_eq!(removed.expect("pictures"), [picture.id]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_changes_what_is_unfinished_finishes_it_first() {
    let server = FerretDb::start().await;
    let store = open(&server.url("social")).await;
    let (owner, _, picture) = insert_picture(&*store).await;
    let database = raw(&server).await;
    leave_a_like_behind(&database, &owner, &picture).await;

    let effects = sample::like_effects(&picture, false);
    let ended = store.set_like(picture.id, owner.id, false, effects).await;
    assert_eq!(ended.expect("it ends").likes, Head { seq: 2, total: 0 });
    let log = store.events(&topic::likes(picture.id), 0, 10).await;
    let totals: Vec<i64> = log
        .expect("a log")
        .iter()
        .map(|event| event.total)
        .collect();
    assert_eq!(totals, [1, 0], "the like comes before its end");
}

async fn leave_a_like_behind(database: &Database, fan: &User, picture: &Picture) {
    let id = format!("{}:{}:1", picture.id, fan.id);
    let intent = intent("set_like", &id, picture.id, &[topic::likes(picture.id)]);
    let toggle = doc! {
        "picture": picture.id.to_string(),
        "user": fan.id.to_string(),
        "number": 1_i64,
        "on": true,
    };
    insert(database, "intents", intent.clone()).await;
    insert(database, "likes", primary(&intent, toggle)).await;
}

/// Returns an intent with an event for each of the topics, and a notification.
fn intent(change: &str, primary: &str, subject: Id, topics: &[String]) -> Document {
    let event = |topic: &String| {
        doc! { "topic": topic, "key": "left-behind", "delta": 1_i64, "at": 0_i64, "body": "{}" }
    };
    let task = doc! {
        "_id": "push:left-behind",
        "kind": "push",
        "payload": "{}",
        "state": "waiting",
        "attempts": 0,
        "due": 0_i64,
        "added_at": 0_i64,
    };
    doc! {
        "_id": Id::new().to_string(),
        "change": change,
        "primary": primary,
        "subject": subject.to_string(),
        "events": topics.iter().map(event).collect::<Vec<_>>(),
        "tasks": if topics.is_empty() { vec![] } else { vec![task] },
    }
}

fn primary(intent: &Document, record: Document) -> Document {
    let text = |key| intent.get_str(key).expect("it has one");
    doc! { "_id": text("primary"), "intent": text("_id"), "removed": false, "record": record }
}

/// Returns the first event of the topic, written for the intent, whose writer then died.
fn event(intent: &Document, topic: &str) -> Document {
    doc! {
        "_id": format!("{topic}#{:020}", 1),
        "topic": topic,
        "key": "left-behind",
        "intent": intent.get_str("_id").expect("it has one"),
        "seq": 1_i64,
        "total": 1_i64,
        "at": 0_i64,
        "body": "{}",
        "pruned": false,
    }
}

fn record(thing: &impl serde::Serialize) -> Document {
    mongodb::bson::serialize_to_document(thing).expect("it is a document")
}

async fn insert(database: &Database, collection: &str, document: Document) {
    let inserted = database.collection(collection).insert_one(document).await;
    inserted.expect("it can be inserted");
}
