use std::time::Duration;

use futures_util::future::{try_join, try_join_all};
use serde_json::json;
use tempfile::TempPath;
use url::Url;

use super::albums::album_to_fill;
use super::pages::{PictureView, TIMELINE_KEY};
use super::storage::storage;
use super::{now, publish, wake};
use crate::images::Processed;
use crate::model::{
    Album, Author, Effects, Id, NewEvent, NewTask, Picture, TaskKind, TextError, check_text, topic,
};
use crate::{App, Failure};

/// Longest age of a picture's record in the cache.
const PICTURE_TTL: Duration = Duration::from_secs(10);

/// An uploaded file.
#[derive(Debug)]
pub struct Upload {
    /// The file's place; deleted when this is dropped.
    pub file: TempPath,
    /// Caption of up to 500 characters.
    pub caption: String,
    /// Description for those who cannot see it: up to 500 characters.
    pub alt: String,
}

/// Adds pictures to an album: all of them, or none if one is rejected. They are processed in
/// parallel, as far as the stage has threads, and returned together. (The thesis' program 4.2.)
///
/// # Errors
/// [`Failure::Forbidden`] for somebody else's album, [`Failure::NotFound`], [`Failure::TooLarge`]
/// if they exceed the user's quota, and those of
/// [`Images::process`](crate::images::Images::process).
pub async fn upload(
    app: &App,
    user: &Author,
    album: Id,
    uploads: Vec<Upload>,
) -> Result<Vec<PictureView>, Failure> {
    let album = album_to_fill(app, user.id, album).await?;
    let processing = uploads.iter().map(|upload| prepare(app, &album, upload));
    let prepared = try_join_all(processing).await?;
    // One upload of a user at a time, so that two do not use the same rest of a quota. Other
    // replicas do not wait for it.
    let turn = app.keeping.take(user.id).await?;
    let bytes = prepared.iter().map(|(picture, _)| picture.bytes).sum();
    let storage = storage(app, user.id).await?;
    storage.check(prepared.len() as u64, bytes)?;
    let kept = keep_all(app, &prepared, &uploads).await;
    drop(turn);
    app.cache.invalidate(&[TIMELINE_KEY.to_owned()]).await;
    if kept.is_err() {
        take_back(app, &prepared).await;
    }
    kept?;
    let view = |(picture, _)| PictureView {
        picture,
        likes: 0,
        likes_seq: 0,
        comments: 0,
        comments_seq: 0,
        liked: false,
    };
    Ok(prepared.into_iter().map(view).collect())
}

/// Checks that a user may add a picture to an album, before its body is read.
///
/// # Errors
/// Those of [`album_to_fill`], and [`Failure::TooLarge`] if the quota has no room for another
/// picture.
pub async fn check_room(app: &App, user: Id, album: Id) -> Result<(), Failure> {
    album_to_fill(app, user, album).await?;
    storage(app, user).await?.check(1, 1)
}

async fn prepare(
    app: &App,
    album: &Album,
    upload: &Upload,
) -> Result<(Picture, Processed), Failure> {
    let caption = check_text("caption", &upload.caption, 0, 500)?;
    let alt = check_alt(&upload.alt)?;
    let path = upload.file.to_path_buf();
    let length = async {
        tokio::fs::metadata(&path)
            .await
            .map_err(crate::images::io_failure)
    };
    let (processed, metadata) =
        try_join(app.images.process(&album.owner, path.clone()), length).await?;
    let picture = Picture {
        id: Id::new(),
        album: album.id,
        owner: album.owner.clone(),
        caption,
        alt,
        media: processed.media,
        width: processed.width,
        height: processed.height,
        bytes: metadata.len(),
        created_at: now(),
    };
    Ok((picture, processed))
}

fn check_alt(alt: &str) -> Result<String, TextError> {
    check_text("alt", alt, 0, 500)
}

/// Stores files first: a record without files would show a broken picture, files without a record
/// only take space.
async fn keep_all(
    app: &App,
    prepared: &[(Picture, Processed)],
    uploads: &[Upload],
) -> Result<(), Failure> {
    app.store.add_tasks(sweeping(app, prepared)).await?;
    for ((picture, processed), upload) in prepared.iter().zip(uploads) {
        app.files.store(picture.id, &upload.file, processed).await?;
    }
    for (picture, _) in prepared {
        keep(app, picture).await?;
    }
    Ok(())
}

/// Returns tasks that delete the files later if their records are never stored, should this process
/// die in between.
fn sweeping(app: &App, prepared: &[(Picture, Processed)]) -> Vec<NewTask> {
    let task = |(picture, _): &(Picture, Processed)| NewTask {
        key: format!("sweep-picture:{}", picture.id),
        kind: TaskKind::Remove,
        payload: json!({ "unkept": picture.id }),
        due: now() + app.settings.pictures.leftovers_after,
    };
    prepared.iter().map(task).collect()
}

async fn keep(app: &App, picture: &Picture) -> Result<(), Failure> {
    let effects = Effects {
        events: vec![NewEvent {
            topic: topic::TIMELINE.to_owned(),
            key: picture.id.to_string(),
            delta: 1,
            body: json!({"picture": picture}),
        }],
        tasks: Vec::new(),
    };
    let events = app.store.insert_picture(picture, effects).await?;
    publish(app, &events).await;
    Ok(())
}

/// Undoes a partial upload, so that a client may simply try again. What cannot be undone now,
/// because the storage is unavailable, is logged.
async fn take_back(app: &App, prepared: &[(Picture, Processed)]) {
    for (picture, _) in prepared {
        match app.store.delete_picture(picture.id).await {
            Ok(Some(events)) => publish(app, &events).await,
            Ok(None) => {
                if let Err(error) = app.files.remove(picture.id).await {
                    let picture = picture.id;
                    tracing::warn!(%picture, %error, "files without a record stay for a while");
                }
            }
            Err(error) => {
                let picture = picture.id;
                tracing::warn!(%picture, %error, "a picture of a failed upload may stay");
            }
        }
    }
    wake(app, &[TaskKind::Remove]);
}

/// Returns a picture's record, at most some seconds old.
///
/// # Errors
/// [`Failure::NotFound`].
pub async fn find_picture(app: &App, id: Id) -> Result<Picture, Failure> {
    let load = async {
        let found = app.store.picture(id).await?;
        found.ok_or(Failure::NotFound("picture"))
    };
    app.cache
        .get_or_load(&picture_key(id), PICTURE_TTL, load)
        .await
}

pub(super) fn picture_key(id: Id) -> String {
    format!("picture:{id}")
}

/// Deletes a picture; its files are deleted later.
///
/// # Errors
/// [`Failure::NotFound`], and [`Failure::Forbidden`] for somebody else's.
pub async fn delete_picture(app: &App, user: Id, id: Id) -> Result<(), Failure> {
    let picture = find_picture(app, id).await?;
    if picture.owner.id != user {
        return Err(Failure::Forbidden("only its owner may delete a picture"));
    }
    let events = app.store.delete_picture(id).await?;
    forget(app, id).await;
    publish(app, &events.ok_or(Failure::NotFound("picture"))?).await;
    wake(app, &[TaskKind::Remove]);
    Ok(())
}

/// Changes a picture's description.
///
/// # Errors
/// [`Failure::Invalid`], [`Failure::NotFound`], and [`Failure::Forbidden`] for somebody else's.
pub async fn describe_picture(app: &App, user: Id, id: Id, alt: &str) -> Result<Picture, Failure> {
    let picture = find_picture(app, id).await?;
    if picture.owner.id != user {
        return Err(Failure::Forbidden("only its owner may describe a picture"));
    }
    let described = app.store.set_alt(id, &check_alt(alt)?).await?;
    forget(app, id).await;
    described.ok_or(Failure::NotFound("picture"))
}

/// Removes a changed picture from the cache.
async fn forget(app: &App, id: Id) {
    let keys = [picture_key(id), TIMELINE_KEY.to_owned()];
    app.cache.invalidate(&keys).await;
}

/// Shares a picture with the third party; returns its address there.
///
/// # Errors
/// [`Failure::NotFound`], and those of [`Share::share`](crate::share::Share::share).
pub async fn share(app: &App, id: Id) -> Result<Url, Failure> {
    let share = app.share.as_ref().ok_or(Failure::NotFound(
        "service to share with: none is configured",
    ))?;
    let picture = find_picture(app, id).await?;
    let link = app
        .settings
        .base_url()
        .join(&format!("/pictures/{id}"))
        .map_err(Failure::internal)?;
    share.share(id, &link, &picture.caption).await
}
