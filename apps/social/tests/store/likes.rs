use std::collections::HashSet;
use std::sync::Arc;

use futures_util::future::join_all;
use social::model::{Effects, Head, Id, TaskKind, topic};
use social::store::Store;

use super::sample::{
    claim, in_seconds, insert_picture, insert_picture_of, insert_user, like_effects, seqs,
};

pub(crate) async fn to_like_twice_is_to_like_once(store: Arc<dyn Store>) {
    let (_, _, picture) = insert_picture(&*store).await;
    let fan = insert_user(&*store, "fan").await.id;
    let like = || store.set_like(picture.id, fan, true, like_effects(&picture, true));
    let first = like().await.expect("liked");
    assert!(first.changed);
    assert_eq!(first.likes, Head { seq: 1, total: 1 });
    let second = like().await.expect("liked already");
    assert!(!second.changed);
    assert_eq!(second.events, []);
    assert_eq!(second.likes, Head { seq: 1, total: 1 });
    assert_eq!(
        store.liked(fan, &[picture.id]).await.expect("likes"),
        [picture.id]
    );
}

pub(crate) async fn a_like_ends(store: Arc<dyn Store>) {
    let (_, _, picture) = insert_picture(&*store).await;
    let fan = insert_user(&*store, "fan").await.id;
    let set = |liked| store.set_like(picture.id, fan, liked, like_effects(&picture, liked));
    let never = set(false).await.expect("there was no like");
    assert!(!never.changed);
    assert_eq!(never.likes, Head { seq: 0, total: 0 });
    set(true).await.expect("liked");
    let ended = set(false).await.expect("it ends");
    assert!(ended.changed);
    assert_eq!(ended.likes, Head { seq: 2, total: 0 });
    assert_eq!(store.liked(fan, &[picture.id]).await.expect("likes"), []);
    let again = set(true).await.expect("liked again");
    assert_eq!(again.likes, Head { seq: 3, total: 1 });
}

pub(crate) async fn effects_of_no_change_are_not_stored(store: Arc<dyn Store>) {
    let (owner, _, picture) = insert_picture(&*store).await;
    let fan = insert_user(&*store, "fan").await.id;
    let mut events = Vec::new();
    for liked in [false, true, true, true] {
        let change = store
            .set_like(picture.id, fan, liked, like_effects(&picture, liked))
            .await;
        events.extend(change.expect("set").events);
    }
    let topics = [topic::likes(picture.id), topic::bell(owner.id)];
    let written: Vec<_> = events
        .iter()
        .map(|event| (&event.topic, event.seq, event.total))
        .collect();
    assert_eq!(written, [(&topics[0], 1, 1), (&topics[1], 1, 1)]);
    for (topic, event) in topics.iter().zip(&events) {
        let log = store.events(topic, 0, 10).await.expect("a log");
        assert_eq!(
            log,
            std::slice::from_ref(event),
            "what is returned is what is kept"
        );
    }
    let tasks = claim(&*store, TaskKind::Push, in_seconds(1)).await;
    assert_eq!(tasks.len(), 1, "{tasks:?}");
}

pub(crate) async fn a_hundred_users_like_at_once(store: Arc<dyn Store>) {
    let (_, _, picture) = insert_picture(&*store).await;
    let likes =
        (0..100).map(|_| store.set_like(picture.id, Id::new(), true, like_effects(&picture, true)));
    let mut heads: Vec<Head> = Vec::new();
    for change in join_all(likes).await {
        let change = change.expect("liked");
        assert!(change.changed);
        heads.push(change.likes);
    }
    heads.sort_by_key(|head| head.seq);
    let expected: Vec<Head> = (1..=100)
        .map(|seq: u32| Head {
            seq: seq.into(),
            total: seq.into(),
        })
        .collect();
    assert_eq!(heads, expected, "each like is the end of the log once");
    for topic in [topic::likes(picture.id), topic::bell(picture.owner.id)] {
        let log = store.events(&topic, 0, 200).await.expect("a log");
        assert_eq!(seqs(&log), (1..=100).collect::<Vec<u64>>());
        let keys: HashSet<String> = log.iter().map(|event| event.body.to_string()).collect();
        assert_eq!(keys.len(), 100, "each like is there once");
        let heads = store
            .heads(std::slice::from_ref(&topic))
            .await
            .expect("heads");
        assert_eq!(
            heads[&topic],
            Head {
                seq: 100,
                total: 100
            }
        );
    }
}

pub(crate) async fn one_user_likes_a_hundred_times_at_once(store: Arc<dyn Store>) {
    let (_, _, picture) = insert_picture(&*store).await;
    let fan = insert_user(&*store, "fan").await.id;
    let likes =
        (0..100).map(|_| store.set_like(picture.id, fan, true, like_effects(&picture, true)));
    let changes: Vec<_> = join_all(likes)
        .await
        .into_iter()
        .map(|change| change.expect("liked"))
        .collect();
    assert_eq!(changes.iter().filter(|change| change.changed).count(), 1);
    assert!(
        changes
            .iter()
            .all(|change| change.likes == Head { seq: 1, total: 1 })
    );
    let log = store
        .events(&topic::likes(picture.id), 0, 200)
        .await
        .expect("a log");
    assert_eq!(log.len(), 1);
    let tasks = claim(&*store, TaskKind::Push, in_seconds(1)).await;
    assert_eq!(tasks.len(), 1);
}

pub(crate) async fn only_liked_pictures_are_liked(store: Arc<dyn Store>) {
    let (_, album, first) = insert_picture(&*store).await;
    let second = insert_picture_of(&*store, &album).await;
    let third = insert_picture_of(&*store, &album).await;
    let (fan, other) = (Id::new(), Id::new());
    for (picture, user) in [(&first, fan), (&third, fan), (&second, other)] {
        let change = store
            .set_like(picture.id, user, true, Effects::default())
            .await;
        assert_eq!(change.expect("liked").events, []);
    }
    let all = [first.id, second.id, third.id, Id::new()];
    let mut liked = store.liked(fan, &all).await.expect("likes");
    liked.sort();
    assert_eq!(liked, [first.id, third.id]);
    assert_eq!(store.liked(fan, &[second.id]).await.expect("likes"), []);
    assert_eq!(store.liked(fan, &[]).await.expect("likes"), []);
}

pub(crate) async fn likes_are_found_by_user(store: Arc<dyn Store>) {
    let (_, album, first) = insert_picture(&*store).await;
    let second = insert_picture_of(&*store, &album).await;
    let third = insert_picture_of(&*store, &album).await;
    let (fan, other) = (Id::new(), Id::new());
    for (picture, user, liked) in [
        (&first, fan, true),
        (&second, fan, true),
        (&second, other, true),
        (&third, fan, true),
        (&third, fan, false),
    ] {
        let change = store.set_like(picture.id, user, liked, Effects::default());
        change.await.expect("set");
    }
    let likes = async |user, after, limit| {
        let likes = store.likes_by(user, after, limit).await;
        likes.expect("likes")
    };
    let mut both = [first.id, second.id];
    both.sort();
    assert_eq!(likes(fan, None, 10).await, both);
    assert_eq!(likes(fan, None, 1).await, both[..1]);
    assert_eq!(likes(fan, Some(both[0]), 10).await, both[1..]);
    assert_eq!(likes(fan, Some(both[1]), 10).await, []);
    assert_eq!(likes(Id::new(), None, 10).await, []);
}
