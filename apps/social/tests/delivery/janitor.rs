//! The removal of what deleted pictures and users leave behind.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use greenroom::bus::{Event, Subscription};
use jiff::Timestamp;
use serde_json::{Value, json};
use social::config::FilesSettings;
use social::model::{Comment, Effects, Id, NewEvent, TaskKind, topic};

use crate::fixture::Fixture;

#[tokio::test]
async fn a_deleted_album_leaves_nothing_behind_though_a_replica_dies() {
    const LEASE: Duration = Duration::from_mins(1);
    let fixture = Fixture::open().await;
    let ada = fixture.user("ada").await;
    let album = fixture.album(&ada).await;
    for _ in 0..120 {
        fixture.picture(&album, "").await;
    }
    assert!(
        fixture
            .store
            .delete_album(album.id)
            .await
            .expect("the storage is there")
            .is_some()
    );
    // A replica claims the task and dies.
    let claimed = fixture
        .store
        .claim_tasks(TaskKind::Remove, fixture.now(), LEASE, 10)
        .await;
    assert_eq!(claimed.expect("the storage is there").len(), 1);

    let replica = fixture.replica();
    replica.outbox.wake(TaskKind::Remove);
    assert_eq!(removed(&fixture, album.id).await, 120, "the lease holds");
    fixture.advance(LEASE + Duration::from_secs(1));
    fixture.done(&replica, TaskKind::Remove).await;
    assert_eq!(removed(&fixture, album.id).await, 0);
}

#[tokio::test]
async fn a_deleted_picture_leaves_nothing_behind() {
    let fixture = Fixture::open().await;
    let ada = fixture.user("ada").await;
    let album = fixture.album(&ada).await;
    let (gone, kept) = (
        fixture.picture(&album, "").await,
        fixture.picture(&album, "").await,
    );
    fixture.ring(&gone, "like", "bob", &[]).await;
    assert!(
        fixture
            .store
            .delete_picture(gone.id)
            .await
            .expect("the storage is there")
            .is_some()
    );
    let replica = fixture.replica();
    fixture.done(&replica, TaskKind::Remove).await;
    let likes = social::model::topic::likes(gone.id);
    let events = fixture
        .store
        .events(&likes, 0, 10)
        .await
        .expect("the storage is there");
    assert_eq!(events, []);
    let found = fixture
        .store
        .picture(kept.id)
        .await
        .expect("the storage is there");
    assert_eq!(found.map(|picture| picture.id), Some(kept.id));
}

/// Data that comes late, from a request that was admitted before, goes too.
#[tokio::test]
async fn a_deleted_user_leaves_nothing_behind() {
    let fixture = Fixture::open().await;
    let (ada, bob) = (fixture.user("ada").await, fixture.user("bob").await);
    let hers = fixture.picture(&fixture.album(&ada).await, "").await;
    let theirs = fixture.picture(&fixture.album(&bob).await, "").await;
    let store = &fixture.store;
    let say = async || {
        let comment = Comment {
            id: Id::new(),
            picture: theirs.id,
            author: ada.author(),
            text: "fine".to_owned(),
            created_at: Timestamp::now(),
        };
        let said = store.insert_comment(&comment, Effects::default()).await;
        said.expect("the picture is there");
    };
    say().await;
    let like = store.set_like(theirs.id, ada.id, true, Effects::default());
    like.await.expect("the picture is there");
    assert!(store.delete_user(ada.id).await.expect("deleted"));
    let replica = fixture.replica();
    replica.outbox.wake(TaskKind::Remove);
    while !store
        .comments_by(ada.id, 9)
        .await
        .expect("asked")
        .is_empty()
    {
        tokio::task::yield_now().await;
    }
    say().await;
    fixture.done(&replica, TaskKind::Remove).await;
    assert_eq!(store.comments_by(ada.id, 9).await.expect("asked"), []);
    assert_eq!(store.likes_by(ada.id, None, 9).await.expect("asked"), []);
    assert_eq!(store.picture(hers.id).await.expect("asked"), None);
    assert_eq!(store.albums(ada.id).await.expect("asked"), []);
    let likes = topic::likes(theirs.id);
    let heads = store
        .heads(std::slice::from_ref(&likes))
        .await
        .expect("asked");
    assert_eq!(
        heads[&likes].total, -1,
        "the like, whose event nobody wrote here, has ended"
    );
    fixture.user("ada").await;
}

/// Likes of pictures that are not purged yet, as many as are looked at in a page and one more, come
/// before that of a picture which is there.
#[tokio::test]
async fn likes_of_pictures_that_are_gone_keep_no_other_like() {
    let fixture = Fixture::open().await;
    let (ada, bob) = (fixture.user("ada").await, fixture.user("bob").await);
    let album = fixture.album(&bob).await;
    let store = &fixture.store;
    let like = async |picture: Id| {
        let like = store.set_like(picture, ada.id, true, Effects::default());
        like.await.expect("the picture is there");
    };
    for _ in 0..101 {
        let picture = fixture.picture(&album, "").await;
        like(picture.id).await;
    }
    let kept = fixture.picture(&fixture.album(&bob).await, "").await;
    like(kept.id).await;
    // The task of the album waits on another replica, which has died.
    assert!(store.delete_album(album.id).await.expect("asked").is_some());
    let lease = Duration::from_hours(1);
    let claimed = store.claim_tasks(TaskKind::Remove, fixture.now(), lease, 10);
    assert_eq!(claimed.await.expect("asked").len(), 1);

    assert!(store.delete_user(ada.id).await.expect("deleted"));
    let replica = fixture.replica();
    replica.outbox.wake(TaskKind::Remove);
    while !store
        .liked(ada.id, &[kept.id])
        .await
        .expect("asked")
        .is_empty()
    {
        tokio::task::yield_now().await;
    }
}

/// The pictures of an album that came as the account was deleted go from open timelines, too.
#[tokio::test]
async fn what_goes_with_a_user_is_told_to_who_watches() {
    let fixture = Fixture::open().await;
    let (ada, bob) = (fixture.user("ada").await, fixture.user("bob").await);
    let album = fixture.album(&ada).await;
    fixture.picture(&album, "").await;
    let theirs = fixture.picture(&fixture.album(&bob).await, "").await;
    let like = NewEvent::like(theirs.id, ada.id, true);
    let effects = Effects {
        events: vec![like],
        tasks: Vec::new(),
    };
    let set = fixture.store.set_like(theirs.id, ada.id, true, effects);
    set.await.expect("the picture is there");
    assert!(fixture.store.delete_user(ada.id).await.expect("deleted"));
    let replica = fixture.replica();
    let mut timeline = replica.bus.subscribe(topic::TIMELINE).expect("a topic");
    let topic = topic::likes(theirs.id);
    let mut likes = replica.bus.subscribe(topic.as_str()).expect("a topic");
    fixture.done(&replica, TaskKind::Remove).await;
    let told = async |heard: &mut Subscription| match heard.recv().await {
        Some(Event::Message(message)) => message.json::<Value>().expect("an event")["body"].clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        told(&mut timeline).await,
        json!({"deleted_album": album.id})
    );
    assert_eq!(
        told(&mut likes).await,
        json!({"by": ada.id, "liked": false})
    );
}

/// Bells about likes that ended before the user went name them no more either.
#[tokio::test]
async fn nothing_says_who_a_deleted_user_was() {
    let fixture = Fixture::open().await;
    let (ada, bob) = (fixture.user("ada").await, fixture.user("bob").await);
    let picture = fixture.picture(&fixture.album(&bob).await, "").await;
    fixture.ring(&picture, "like", "ada", &[]).await;
    fixture.ring(&picture, "like", "grace", &[]).await;
    let bell = topic::bell(bob.id);
    let bodies = async || {
        let events = fixture.store.events(&bell, 0, 10).await.expect("a log");
        let by = events.into_iter().map(|event| event.body["by"].clone());
        by.collect::<Vec<_>>()
    };
    assert_eq!(bodies().await, [json!("ada"), json!("grace")]);
    assert!(fixture.store.delete_user(ada.id).await.expect("deleted"));
    let replica = fixture.replica();
    fixture.done(&replica, TaskKind::Remove).await;
    assert_eq!(bodies().await, [Value::Null, json!("grace")]);
}

#[tokio::test]
async fn an_orderly_end_waits_for_what_is_under_way() {
    let fixture = Fixture::open().await;
    let ada = fixture.user("ada").await;
    let album = fixture.album(&ada).await;
    for _ in 0..50 {
        fixture.picture(&album, "").await;
    }
    fixture
        .store
        .delete_album(album.id)
        .await
        .expect("the storage is there");
    let replica = fixture.replica();
    while removed(&fixture, album.id).await == 50 {
        replica.outbox.wake(TaskKind::Remove);
        tokio::task::yield_now().await;
    }
    let report = replica.system.shutdown(Duration::from_secs(30)).await;
    assert!(report.is_clean());
    let next = fixture.store.next_task(TaskKind::Remove).await;
    assert_eq!(
        next.expect("the storage is there"),
        None,
        "it was finished and noted"
    );
}

async fn removed(fixture: &Fixture, album: Id) -> usize {
    let removed = fixture.store.removed_pictures(album, 1_000).await;
    removed.expect("the storage is there").len()
}

/// A process stored the files of two pictures and the record of one, and was killed while it stored
/// those of a third.
#[tokio::test]
async fn files_without_a_record_are_swept() {
    let fixture = Fixture::open().await;
    let ada = fixture.user("ada").await;
    let kept = fixture.picture(&fixture.album(&ada).await, "").await.id;
    let (unkept, truncated) = (Id::new(), Id::new());
    let FilesSettings::Directory(directory) = &fixture.settings.files else {
        panic!("the fixture has a directory");
    };
    let place = |picture: Id, name: &str| {
        let id = picture.to_string();
        let shelf = directory.join(&id[id.len() - 3..]);
        fs::create_dir_all(&shelf).expect("there is room for a directory");
        shelf.join(format!("{id}-{name}"))
    };
    let files = [
        place(kept, "small"),
        place(unkept, "small"),
        place(unkept, "original"),
        place(truncated, "original#1"),
    ];
    for file in &files {
        fs::write(file, b"a picture").expect("there is room for a file");
    }
    for picture in [kept, unkept, truncated] {
        let key = format!("sweep-picture:{picture}");
        let payload = json!({ "unkept": picture });
        fixture.add(&key, TaskKind::Remove, payload).await;
    }
    let replica = fixture.replica();
    fixture.done(&replica, TaskKind::Remove).await;
    let left: Vec<&PathBuf> = files.iter().filter(|file| file.exists()).collect();
    assert_eq!(left, [&files[0]]);
}
