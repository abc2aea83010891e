use std::slice;
use std::sync::Arc;

use futures_util::future::join_all;
use serde_json::json;
use social::model::{Album, Effects, Id, Picture, StorageUsed, TaskKind, User, topic};
use social::store::PicturesOf::{self, Everybody};
use social::store::Store;

use super::sample::{
    self, claim, comment, event, events, in_seconds, insert_album, insert_picture,
    insert_picture_of, insert_user, is_conflict, keys, like_effects,
};

pub(crate) async fn albums_are_listed_the_newest_first(store: Arc<dyn Store>) {
    let ada = insert_user(&*store, "ada").await;
    let grace = insert_user(&*store, "grace").await;
    let first = insert_album(&*store, &ada).await;
    let second = insert_album(&*store, &ada).await;
    let other = insert_album(&*store, &grace).await;
    assert_eq!(store.albums(ada.id).await.expect("albums"), [second, first]);
    assert_eq!(store.album(other.id).await.expect("found"), Some(other));
    assert_eq!(store.album(Id::new()).await.expect("not found"), None);
}

pub(crate) async fn pictures_are_kept_as_they_are(store: Arc<dyn Store>) {
    let (_, album, _) = insert_picture(&*store).await;
    let picture = sample::picture(&album);
    let effects = events(vec![event(topic::TIMELINE, "new", 1)]);
    let written = store
        .insert_pictures(slice::from_ref(&picture), effects)
        .await
        .expect("added");
    assert_eq!((written[0].seq, written[0].total), (1, 1));
    assert_eq!(
        store.picture(picture.id).await.expect("found"),
        Some(picture)
    );
    assert_eq!(store.picture(Id::new()).await.expect("not found"), None);
}

/// The second of three has an identifier that is taken, so the storage fails in the midst of them.
pub(crate) async fn pictures_are_added_together_or_not_at_all(store: Arc<dyn Store>) {
    let (owner, album, there) = insert_picture(&*store).await;
    let mut upload = [(); 3].map(|()| sample::picture(&album));
    upload[1].id = there.id;
    let announced = |pictures: &[Picture]| {
        let each = pictures.iter();
        let each = each.map(|picture| event(topic::TIMELINE, &picture.id.to_string(), 1));
        events(each.collect())
    };
    let failed = store.insert_pictures(&upload, announced(&upload)).await;
    assert!(failed.is_err(), "{failed:?}");
    let only = slice::from_ref(&there);
    assert_eq!(page(&*store, Everybody, None).await, only);
    let used = store.storage_used(owner.id).await.expect("sums");
    assert_eq!(used.pictures, 1);
    let log = store.events(topic::TIMELINE, 0, 10).await.expect("a log");
    assert_eq!(log, []);

    let mut again = [(); 3].map(|()| sample::picture(&album));
    let written = store.insert_pictures(&again, announced(&again)).await;
    assert_eq!(sample::seqs(&written.expect("added")), [1, 2, 3]);
    again.reverse();
    let listed = store.pictures(Everybody, None, 4).await.expect("pictures");
    assert_eq!(listed, [&again[..], only].concat());
}

pub(crate) async fn pictures_are_listed_in_pages(store: Arc<dyn Store>) {
    let (owner, album, first) = insert_picture(&*store).await;
    let other_album = insert_album(&*store, &owner).await;
    let stranger = insert_user(&*store, "stranger").await;
    let strange_album = insert_album(&*store, &stranger).await;
    let mut all = vec![first];
    for album in [&other_album, &strange_album, &album, &album] {
        all.push(insert_picture_of(&*store, album).await);
    }
    all.reverse();

    assert_eq!(page(&*store, Everybody, None).await, all[..3]);
    assert_eq!(page(&*store, Everybody, Some(all[2].id)).await, all[3..]);
    assert_eq!(page(&*store, Everybody, Some(all[4].id)).await, []);
    let of_owner = [&all[0], &all[1], &all[3], &all[4]].map(Clone::clone);
    assert_eq!(
        page(&*store, PicturesOf::Owner(owner.id), None).await,
        of_owner[..3]
    );
    assert_eq!(
        page(&*store, PicturesOf::Owner(owner.id), Some(all[1].id)).await,
        of_owner[2..]
    );
    let of_album = [&all[0], &all[1], &all[4]].map(Clone::clone);
    assert_eq!(
        page(&*store, PicturesOf::Album(album.id), None).await,
        of_album
    );
    assert_eq!(
        page(&*store, PicturesOf::Album(album.id), Some(all[0].id)).await,
        of_album[1..]
    );
    assert_eq!(page(&*store, PicturesOf::Album(Id::new()), None).await, []);
}

async fn page(store: &dyn Store, of: PicturesOf, before: Option<Id>) -> Vec<Picture> {
    store.pictures(of, before, 3).await.expect("pictures")
}

pub(crate) async fn a_picture_needs_its_album(store: Arc<dyn Store>) {
    let owner = insert_user(&*store, "owner").await;
    let picture = sample::picture(&sample::album(&owner));
    let effects = events(vec![event(topic::TIMELINE, "new", 1)]);
    let inserted = store
        .insert_pictures(slice::from_ref(&picture), effects)
        .await;
    assert!(is_conflict(&inserted), "{inserted:?}");
    assert_no_trace_of(&*store, &picture).await;
    assert_eq!(
        store.events(topic::TIMELINE, 0, 10).await.expect("a log"),
        []
    );
}

pub(crate) async fn an_album_is_deleted_with_all_its_pictures(store: Arc<dyn Store>) {
    let (owner, album, first) = insert_picture(&*store).await;
    let second = insert_picture_of(&*store, &album).await;
    let other_album = insert_album(&*store, &owner).await;
    let other = insert_picture_of(&*store, &other_album).await;
    let deleted = store.delete_album(album.id).await.expect("deleted");
    assert!(deleted.is_some());

    assert_eq!(store.album(album.id).await.expect("gone"), None);
    assert_eq!(store.albums(owner.id).await.expect("albums"), [other_album]);
    for picture in [&first, &second] {
        assert_no_trace_of(&*store, picture).await;
    }
    assert_eq!(
        page(&*store, Everybody, None).await,
        slice::from_ref(&other)
    );
    let late = store
        .insert_pictures(
            slice::from_ref(&sample::picture(&album)),
            Effects::default(),
        )
        .await;
    assert!(is_conflict(&late), "{late:?}");

    let tasks = claim(&*store, TaskKind::Remove, in_seconds(1)).await;
    assert_eq!(keys(&tasks), [format!("remove-album:{}", album.id)]);
    assert_eq!(tasks[0].payload, json!({ "album": album.id }));
    assert_eq!(removed(&*store, &album).await, [first.id, second.id]);
    let one = store.removed_pictures(album.id, 1).await.expect("pictures");
    assert_eq!(one.len(), 1);
    store.purge_picture(first.id).await.expect("purged");
    assert_eq!(removed(&*store, &album).await, [second.id]);
    store.purge_picture(second.id).await.expect("purged");
    assert_eq!(removed(&*store, &album).await, []);
    assert_eq!(page(&*store, Everybody, None).await, [other]);
}

/// Returns the deleted pictures of an album, in the order of their identifiers.
async fn removed(store: &dyn Store, album: &Album) -> Vec<Id> {
    let mut removed = store
        .removed_pictures(album.id, 100)
        .await
        .expect("pictures");
    removed.sort();
    removed
}

pub(crate) async fn an_album_is_deleted_once(store: Arc<dyn Store>) {
    let (_, album, _) = insert_picture(&*store).await;
    let deletions = join_all((0..10).map(|_| store.delete_album(album.id))).await;
    let done = deletions.into_iter().map(|deleted| deleted.expect("asked"));
    assert_eq!(done.flatten().count(), 1);
    let deleted = store.delete_album(Id::new()).await;
    assert_eq!(deleted.expect("no such album"), None);
    let tasks = claim(&*store, TaskKind::Remove, in_seconds(1)).await;
    assert_eq!(tasks.len(), 1);
}

pub(crate) async fn a_picture_that_comes_while_its_album_is_deleted_does_not_stay(
    store: Arc<dyn Store>,
) {
    let (_, album, _) = insert_picture(&*store).await;
    let pictures: Vec<Picture> = (0..20).map(|_| sample::picture(&album)).collect();
    let insert = |picture| store.insert_pictures(slice::from_ref(picture), Effects::default());
    let (before, after) = pictures.split_at(10);
    let (early, deleted, late) = tokio::join!(
        join_all(before.iter().map(insert)),
        store.delete_album(album.id),
        join_all(after.iter().map(insert)),
    );
    assert!(deleted.expect("deleted").is_some());
    let removed = removed(&*store, &album).await;
    for (picture, inserted) in pictures.iter().zip(early.iter().chain(&late)) {
        assert_no_trace_of(&*store, picture).await;
        assert!(inserted.is_ok() || is_conflict(inserted), "{inserted:?}");
        let is_removed = removed.contains(&picture.id);
        assert!(
            is_removed || is_conflict(inserted),
            "nobody would delete its files"
        );
    }
}

pub(crate) async fn a_picture_is_deleted_alone(store: Arc<dyn Store>) {
    let (_, album, first) = insert_picture(&*store).await;
    let second = insert_picture_of(&*store, &album).await;
    let deleted = store.delete_picture(first.id).await.expect("deleted");
    let announced: Vec<_> = deleted.iter().flatten().collect();
    assert_eq!(
        (announced.len(), &announced[0].topic[..], &announced[0].body),
        (1, topic::TIMELINE, &json!({ "deleted": first.id }))
    );
    for gone in [first.id, Id::new()] {
        let deleted = store.delete_picture(gone).await;
        assert_eq!(deleted.expect("it is not there"), None);
    }
    assert_no_trace_of(&*store, &first).await;
    assert_eq!(
        page(&*store, PicturesOf::Album(album.id), None).await,
        [second]
    );
    let tasks = claim(&*store, TaskKind::Remove, in_seconds(1)).await;
    assert_eq!(keys(&tasks), [format!("remove-picture:{}", first.id)]);
    assert_eq!(tasks[0].payload, json!({ "picture": first.id }));
    assert_eq!(
        removed(&*store, &album).await,
        [],
        "the album is not deleted"
    );
}

async fn assert_no_trace_of(store: &dyn Store, picture: &Picture) {
    assert_eq!(store.picture(picture.id).await.expect("not found"), None);
    let places = [
        Everybody,
        PicturesOf::Album(picture.album),
        PicturesOf::Owner(picture.owner.id),
    ];
    for of in places {
        let found = store.pictures(of, None, 100).await.expect("pictures");
        assert!(
            found.iter().all(|found| found.id != picture.id),
            "{of:?}: {found:?}"
        );
    }
}

pub(crate) async fn a_deleted_picture_takes_neither_likes_nor_comments(store: Arc<dyn Store>) {
    let (owner, album, picture) = insert_picture(&*store).await;
    let alone = insert_picture_of(&*store, &insert_album(&*store, &owner).await).await;
    store.delete_album(album.id).await.expect("deleted");
    store.delete_picture(alone.id).await.expect("deleted");
    let never = sample::picture(&album);
    for picture in [picture, alone, never] {
        assert_takes_nothing(&*store, &owner, &picture).await;
    }
    let tasks = claim(&*store, TaskKind::Push, in_seconds(1)).await;
    assert_eq!(tasks, []);
}

async fn assert_takes_nothing(store: &dyn Store, fan: &User, picture: &Picture) {
    let like = store
        .set_like(picture.id, fan.id, true, like_effects(picture, true))
        .await;
    assert!(is_conflict(&like), "{like:?}");
    let comment = comment(picture.id, fan, "too late");
    let effects = events(vec![event(&topic::comments(picture.id), "late", 1)]);
    let said = store.insert_comment(&comment, effects).await;
    assert!(is_conflict(&said), "{said:?}");
    let topics = [topic::likes(picture.id), topic::comments(picture.id)];
    assert_eq!(store.heads(&topics).await.expect("heads").len(), 0);
}

pub(crate) async fn nothing_is_left_of_a_purged_picture(store: Arc<dyn Store>) {
    let (owner, album, picture) = insert_picture(&*store).await;
    let other = insert_picture_of(&*store, &album).await;
    let comments = [picture.id, other.id].map(|picture| comment(picture, &owner, "nice"));
    for (picture, comment) in [&picture, &other].into_iter().zip(&comments) {
        let like = store
            .set_like(picture.id, owner.id, true, like_effects(picture, true))
            .await;
        assert!(like.expect("liked").changed);
        let effects = events(vec![event(&topic::comments(picture.id), "said", 1)]);
        store.insert_comment(comment, effects).await.expect("said");
    }
    store.delete_picture(picture.id).await.expect("deleted");
    store.purge_picture(picture.id).await.expect("purged");
    store
        .purge_picture(picture.id)
        .await
        .expect("nothing left to purge");

    assert_no_trace_of(&*store, &picture).await;
    assert_eq!(
        store
            .liked(owner.id, &[picture.id, other.id])
            .await
            .expect("likes"),
        [other.id]
    );
    assert_eq!(store.comment(comments[0].id).await.expect("gone"), None);
    assert_eq!(
        store
            .comments(picture.id, None, 10)
            .await
            .expect("comments"),
        []
    );
    assert_eq!(
        store.comments(other.id, None, 10).await.expect("comments"),
        comments[1..]
    );
    let gone = [topic::likes(picture.id), topic::comments(picture.id)];
    assert_eq!(store.heads(&gone).await.expect("heads").len(), 0);
    for topic in &gone {
        assert_eq!(store.events(topic, 0, 10).await.expect("a log"), []);
    }
    let kept = [
        topic::likes(other.id),
        topic::comments(other.id),
        topic::bell(owner.id),
    ];
    assert_eq!(store.heads(&kept).await.expect("heads").len(), 3);
}

pub(crate) async fn what_is_not_deleted_is_not_purged(store: Arc<dyn Store>) {
    let (owner, _, picture) = insert_picture(&*store).await;
    let like = store
        .set_like(picture.id, owner.id, true, like_effects(&picture, true))
        .await;
    assert!(like.expect("liked").changed);
    store
        .purge_picture(picture.id)
        .await
        .expect("nothing to purge");
    assert_eq!(
        store.liked(owner.id, &[picture.id]).await.expect("likes"),
        [picture.id]
    );
    let likes = store
        .events(&topic::likes(picture.id), 0, 10)
        .await
        .expect("a log");
    assert_eq!(likes.len(), 1);
    assert_eq!(
        store.picture(picture.id).await.expect("found"),
        Some(picture)
    );
}

pub(crate) async fn nobody_reads_a_deleted_picture_in_the_timeline(store: Arc<dyn Store>) {
    let owner = insert_user(&*store, "owner").await;
    let albums = [
        insert_album(&*store, &owner).await,
        insert_album(&*store, &owner).await,
    ];
    let [alone, kept] = [&albums[0], &albums[0]].map(sample::picture);
    let with_album = sample::picture(&albums[1]);
    for picture in [&alone, &kept, &with_album] {
        let announced = event(topic::TIMELINE, &picture.id.to_string(), 1);
        let inserted = store
            .insert_pictures(slice::from_ref(picture), events(vec![announced]))
            .await;
        assert_eq!(inserted.expect("added").len(), 1);
    }
    let bodies = async || {
        let log = store.events(topic::TIMELINE, 0, 10).await.expect("a log");
        log.into_iter().map(|event| event.body).collect::<Vec<_>>()
    };
    let gone = json!({ "gone": true });
    let announced = |picture: &Picture| json!({ "key": picture.id.to_string() });
    store.delete_picture(alone.id).await.expect("deleted");
    let deleted = json!({ "deleted": alone.id });
    assert_eq!(
        bodies().await,
        [
            gone.clone(),
            announced(&kept),
            announced(&with_album),
            deleted.clone()
        ]
    );
    store.delete_album(albums[1].id).await.expect("deleted");
    store.purge_picture(with_album.id).await.expect("purged");
    let album = json!({ "deleted_album": albums[1].id });
    assert_eq!(
        bodies().await,
        [gone.clone(), announced(&kept), gone, deleted, album]
    );
}

pub(crate) async fn what_a_picture_shows_can_be_said_later(store: Arc<dyn Store>) {
    let (_, album, picture) = insert_picture(&*store).await;
    let other = insert_picture_of(&*store, &album).await;
    let described = Picture {
        alt: "A duck on a pond, \"quoted\" 🦆".to_owned(),
        ..picture.clone()
    };
    let changed = store.set_alt(picture.id, &described.alt).await;
    assert_eq!(changed.expect("changed"), Some(described.clone()));
    let found = store.picture(picture.id).await.expect("found");
    assert_eq!(found, Some(described));
    let found = store.picture(other.id).await.expect("found");
    assert_eq!(found, Some(other));
    store.delete_picture(picture.id).await.expect("deleted");
    for gone in [picture.id, Id::new()] {
        let changed = store.set_alt(gone, "nothing").await;
        assert_eq!(changed.expect("it is not there"), None);
    }
}

pub(crate) async fn what_a_user_has_stored_is_known(store: Arc<dyn Store>) {
    let (owner, album, first) = insert_picture(&*store).await;
    let used = async |user: &User| store.storage_used(user.id).await.expect("sums");
    let of = |pictures: u64| StorageUsed {
        pictures,
        bytes: pictures * first.bytes,
    };
    let second = insert_picture_of(&*store, &album).await;
    let other_album = insert_album(&*store, &owner).await;
    for _ in 0..2 {
        insert_picture_of(&*store, &other_album).await;
    }
    let stranger = insert_user(&*store, "stranger").await;
    assert_eq!((used(&owner).await, used(&stranger).await), (of(4), of(0)));
    for _ in 0..2 {
        store.delete_picture(second.id).await.expect("deleted");
    }
    assert_eq!(used(&owner).await, of(3));
    store.delete_album(other_album.id).await.expect("deleted");
    assert_eq!(used(&owner).await, of(1));
    store.purge_picture(second.id).await.expect("purged");
    assert_eq!(used(&owner).await, of(1));
}
