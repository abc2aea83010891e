use std::sync::Arc;

use serde_json::json;
use social::model::{Effects, Head, Id, topic};
use social::store::Store;

use super::sample::{
    comment, event, events, insert_picture, insert_picture_of, insert_user, is_conflict,
};

pub(crate) async fn comments_are_listed_in_pages(store: Arc<dyn Store>) {
    let (owner, album, picture) = insert_picture(&*store).await;
    let other = insert_picture_of(&*store, &album).await;
    let mut comments = Vec::new();
    for number in 0..5 {
        let comment = comment(picture.id, &owner, &format!("line {number}\nline 2 🦆"));
        let inserted = store.insert_comment(&comment, Effects::default()).await;
        assert_eq!(inserted.expect("said"), []);
        comments.push(comment);
    }
    let elsewhere = comment(other.id, &owner, "elsewhere");
    store
        .insert_comment(&elsewhere, Effects::default())
        .await
        .expect("said");
    let page = |after| store.comments(picture.id, after, 3);
    assert_eq!(page(None).await.expect("comments"), comments[..3]);
    assert_eq!(
        page(Some(comments[2].id)).await.expect("comments"),
        comments[3..]
    );
    assert_eq!(page(Some(comments[4].id)).await.expect("comments"), []);
    assert_eq!(
        store.comment(comments[1].id).await.expect("found").as_ref(),
        Some(&comments[1])
    );
    assert_eq!(store.comment(Id::new()).await.expect("not found"), None);
}

pub(crate) async fn a_comment_needs_its_picture(store: Arc<dyn Store>) {
    let (owner, _, _) = insert_picture(&*store).await;
    let comment = comment(Id::new(), &owner, "of nothing");
    let topic = topic::comments(comment.picture);
    let inserted = store
        .insert_comment(&comment, events(vec![event(&topic, "1", 1)]))
        .await;
    assert!(is_conflict(&inserted), "{inserted:?}");
    assert_eq!(store.comment(comment.id).await.expect("not found"), None);
    assert_eq!(store.events(&topic, 0, 10).await.expect("a log"), []);
}

pub(crate) async fn a_comment_is_deleted_once(store: Arc<dyn Store>) {
    let (owner, _, picture) = insert_picture(&*store).await;
    let comment = comment(picture.id, &owner, "first");
    let topic = topic::comments(picture.id);
    let written = store
        .insert_comment(&comment, events(vec![event(&topic, "said", 1)]))
        .await;
    assert_eq!(written.expect("said").len(), 1);

    let delete = |key| store.delete_comment(comment.id, events(vec![event(&topic, key, -1)]));
    let deleted = delete("deleted")
        .await
        .expect("deleted")
        .expect("it was there");
    assert_eq!((deleted[0].seq, deleted[0].total), (2, 0));
    assert_eq!(
        delete("deleted again").await.expect("nothing to delete"),
        None
    );
    assert_eq!(store.comment(comment.id).await.expect("gone"), None);
    assert_eq!(
        store
            .comments(picture.id, None, 10)
            .await
            .expect("comments"),
        []
    );
    let heads = store
        .heads(std::slice::from_ref(&topic))
        .await
        .expect("heads");
    assert_eq!(heads[&topic], Head { seq: 2, total: 0 });
}

pub(crate) async fn nobody_reads_a_deleted_comment_in_the_log(store: Arc<dyn Store>) {
    let (owner, _, picture) = insert_picture(&*store).await;
    let topic = topic::comments(picture.id);
    let comments = ["first", "second"].map(|text| comment(picture.id, &owner, text));
    for comment in &comments {
        let announced = event(&topic, &comment.id.to_string(), 1);
        let said = store.insert_comment(comment, events(vec![announced])).await;
        assert_eq!(said.expect("said").len(), 1);
    }
    let effects = events(vec![event(&topic, "deleted", -1)]);
    let deleted = store.delete_comment(comments[0].id, effects).await;
    assert!(deleted.expect("deleted").is_some());

    let log = store.events(&topic, 0, 10).await.expect("a log");
    let bodies: Vec<_> = log.iter().map(|event| event.body.clone()).collect();
    let gone = json!({ "gone": true });
    let kept = json!({ "key": comments[1].id.to_string() });
    let deleted = json!({ "key": "deleted" });
    assert_eq!(bodies, [gone, kept, deleted]);
    let totals: Vec<i64> = log.iter().map(|event| event.total).collect();
    assert_eq!(totals, [1, 2, 1], "the counts stay");
}

pub(crate) async fn comments_are_found_by_author(store: Arc<dyn Store>) {
    let (owner, album, picture) = insert_picture(&*store).await;
    let other = insert_picture_of(&*store, &album).await;
    let stranger = insert_user(&*store, "stranger").await;
    let mut theirs = Vec::new();
    for (picture, author) in [
        (&picture, &stranger),
        (&picture, &owner),
        (&other, &stranger),
    ] {
        let comment = comment(picture.id, author, "mine");
        let inserted = store.insert_comment(&comment, Effects::default()).await;
        inserted.expect("said");
        if author.id == stranger.id {
            theirs.push(comment);
        }
    }
    let found = async |limit| {
        let found = store.comments_by(stranger.id, limit).await;
        found.expect("comments")
    };
    assert_eq!(found(10).await, theirs);
    assert_eq!(found(1).await, theirs[..1]);
}
