use std::sync::Arc;

use futures_util::future::{try_join, try_join_all};
use serde_json::json;
use tempfile::TempPath;
use tokio::sync::OwnedMutexGuard;

use super::albums::album_to_fill;
use super::pages::PictureView;
use super::pictures::{check_alt, forget};
use super::storage::storage;
use super::{now, publish, wake};
use crate::completing::complete;
use crate::images::{Images, Processed, Resized, Resizers, Workplace, io_failure};
use crate::model::{
    Album, Author, Effects, Id, NewEvent, NewTask, Picture, TaskKind, check_text, topic,
};
use crate::{App, Failure};

/// An uploaded file.
#[derive(Debug)]
pub struct Upload {
    /// The file's place; deleted when this is dropped.
    pub file: Arc<TempPath>,
    /// Caption of up to 500 characters.
    pub caption: String,
    /// Description for those who cannot see it: up to 500 characters.
    pub alt: String,
}

/// A picture whose record is not stored yet.
struct Prepared {
    picture: Picture,
    /// `None` if its files are stored already.
    unstored: Option<Processed>,
}

/// The texts of a picture, by its uploader.
struct Texts {
    caption: String,
    alt: String,
}

/// Adds pictures to an album: all of them, or none if one is rejected. They are processed in
/// parallel, as far as the stage has threads, and returned together. (The thesis' program 4.2.)
///
/// # Errors
/// [`Failure::Forbidden`] for somebody else's album, [`Failure::NotFound`], [`Failure::TooLarge`]
/// if they exceed the user's quota, and those of
/// [`Images::process`](crate::images::Images::process) or [`Resizers::resize`].
pub async fn upload(
    app: &App,
    user: &Author,
    album: Id,
    uploads: Vec<Upload>,
) -> Result<Vec<PictureView>, Failure> {
    let album = album_to_fill(app, user.id, album).await?;
    let prepared = prepare_all(app, &album, &uploads).await?;
    let turn = match find_room(app, user.id, &prepared).await {
        Ok(turn) => turn,
        Err(failure) => {
            remove_files(app, &pictures(&prepared, true)).await;
            return Err(failure);
        }
    };
    let prepared = complete(keep_or_take_back(
        app.clone(),
        album.id,
        turn,
        prepared,
        uploads,
    ))
    .await?;
    let view = |one: Prepared| PictureView {
        picture: one.picture.into(),
        likes: 0,
        likes_seq: 0,
        comments: 0,
        comments_seq: 0,
        liked: false,
    };
    Ok(prepared.into_iter().map(view).collect())
}

/// Keeps all pictures or none. It must complete: some of their files are kept in between.
async fn keep_or_take_back(
    app: App,
    album: Id,
    turn: OwnedMutexGuard<()>,
    prepared: Vec<Prepared>,
    uploads: Vec<Upload>,
) -> Result<Vec<Prepared>, Failure> {
    let kept = keep_all(&app, &prepared, &uploads).await;
    drop(turn);
    if kept.is_err() {
        take_back(&app, &prepared).await;
    }
    forget(&app, album, None).await;
    kept.map(|()| prepared)
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

/// Waits for the user's turn, and checks that the quota has room. One upload of a user at a time,
/// so that two do not use the same rest of a quota. Other replicas do not wait for it.
async fn find_room(
    app: &App,
    user: Id,
    prepared: &[Prepared],
) -> Result<OwnedMutexGuard<()>, Failure> {
    let turn = app.keeping.take(user).await?;
    let bytes = prepared.iter().map(|one| one.picture.bytes).sum();
    let storage = storage(app, user).await?;
    storage.check(prepared.len() as u64, bytes)?;
    Ok(turn)
}

/// Returns the pictures whose files are stored already, or those whose files are not.
fn pictures(prepared: &[Prepared], is_stored: bool) -> Vec<Id> {
    let some = prepared.iter();
    let some = some.filter(|one| one.unstored.is_none() == is_stored);
    some.map(|one| one.picture.id).collect()
}

async fn prepare_all(
    app: &App,
    album: &Album,
    uploads: &[Upload],
) -> Result<Vec<Prepared>, Failure> {
    let texts = uploads.iter().map(Texts::of);
    let texts = texts.collect::<Result<Vec<_>, _>>()?;
    let described = uploads.iter().zip(texts);
    match &app.images {
        Workplace::Here(images) => {
            let each = described.map(|(upload, texts)| prepare_here(images, album, upload, texts));
            try_join_all(each).await
        }
        Workplace::Elsewhere(resizers) => {
            let ids: Vec<_> = uploads.iter().map(|_| Id::new()).collect();
            app.store.add_tasks(sweeping(app, &ids)).await?;
            let each = ids.iter().zip(described).map(|(id, (upload, texts))| {
                prepare_elsewhere(app, resizers, *id, album, upload, texts)
            });
            let prepared = try_join_all(each).await;
            if prepared.is_err() {
                remove_files(app, &ids).await;
            }
            prepared
        }
    }
}

async fn prepare_here(
    images: &Images,
    album: &Album,
    upload: &Upload,
    texts: Texts,
) -> Result<Prepared, Failure> {
    let path = upload.file.to_path_buf();
    let processing = images.process(album.owner.id, path);
    let (processed, bytes) = try_join(processing, upload.length()).await?;
    let Processed {
        media,
        width,
        height,
        ..
    } = processed;
    let resized = Resized {
        media,
        width,
        height,
    };
    Ok(Prepared {
        picture: texts.picture(Id::new(), album, resized, bytes),
        unstored: Some(processed),
    })
}

/// Has another process prepare the picture, which finds it in the shared files.
async fn prepare_elsewhere(
    app: &App,
    resizers: &Resizers,
    id: Id,
    album: &Album,
    upload: &Upload,
    texts: Texts,
) -> Result<Prepared, Failure> {
    let bytes = upload.length().await?;
    app.files.store_original(id, &upload.file).await?;
    let resized = resizers.resize(id, album.owner.id).await?;
    Ok(Prepared {
        picture: texts.picture(id, album, resized, bytes),
        unstored: None,
    })
}

impl Upload {
    async fn length(&self) -> Result<u64, Failure> {
        let metadata = tokio::fs::metadata(&*self.file).await;
        Ok(metadata.map_err(io_failure)?.len())
    }
}

impl Texts {
    fn of(upload: &Upload) -> Result<Self, Failure> {
        Ok(Self {
            caption: check_text("caption", &upload.caption, 0, 500)?,
            alt: check_alt(&upload.alt)?,
        })
    }

    fn picture(self, id: Id, album: &Album, resized: Resized, bytes: u64) -> Picture {
        Picture {
            id,
            album: album.id,
            owner: album.owner.clone(),
            caption: self.caption,
            alt: self.alt,
            media: resized.media,
            width: resized.width,
            height: resized.height,
            bytes,
            created_at: now(),
        }
    }
}

/// Stores files first: a record without files would show a broken picture, files without a record
/// only take space.
async fn keep_all(app: &App, prepared: &[Prepared], uploads: &[Upload]) -> Result<(), Failure> {
    let ids = pictures(prepared, false);
    if !ids.is_empty() {
        app.store.add_tasks(sweeping(app, &ids)).await?;
    }
    for (one, upload) in prepared.iter().zip(uploads) {
        if let Some(processed) = &one.unstored {
            let id = one.picture.id;
            app.files.store(id, &upload.file, processed).await?;
        }
    }
    let pictures: Vec<_> = prepared.iter().map(|one| one.picture.clone()).collect();
    keep(app, &pictures).await
}

/// Returns tasks that delete the files later if their records are never stored, should this process
/// die in between.
fn sweeping(app: &App, pictures: &[Id]) -> Vec<NewTask> {
    let task = |picture: &Id| NewTask {
        key: format!("sweep-picture:{picture}"),
        kind: TaskKind::Remove,
        payload: json!({ "unkept": picture }),
        due: now() + app.settings.pictures.leftovers_after,
    };
    pictures.iter().map(task).collect()
}

async fn keep(app: &App, pictures: &[Picture]) -> Result<(), Failure> {
    let event = |picture: &Picture| NewEvent {
        topic: topic::TIMELINE.to_owned(),
        key: picture.id.to_string(),
        delta: 1,
        body: json!({"picture": picture}),
    };
    let effects = Effects {
        events: pictures.iter().map(event).collect(),
        tasks: Vec::new(),
    };
    let events = app.store.insert_pictures(pictures, effects).await?;
    publish(app, &events).await;
    Ok(())
}

/// Undoes an upload that failed, so that a client may simply try again: the storage may not know
/// whether it has kept the records. What cannot be undone now, because the storage is unavailable,
/// is logged.
async fn take_back(app: &App, prepared: &[Prepared]) {
    for Prepared { picture, .. } in prepared {
        match app.store.delete_picture(picture.id).await {
            Ok(Some(events)) => publish(app, &events).await,
            Ok(None) => remove_files(app, &[picture.id]).await,
            Err(error) => {
                let picture = picture.id;
                tracing::warn!(%picture, %error, "a picture of a failed upload may stay");
            }
        }
    }
    wake(app, &[TaskKind::Remove]);
}

/// Deletes the files of pictures that have no record. Those that cannot be deleted now, or that
/// another process is still writing, are swept later.
async fn remove_files(app: &App, pictures: &[Id]) {
    for picture in pictures {
        if let Err(error) = app.files.remove(*picture).await {
            tracing::warn!(%picture, %error, "files without a record stay for a while");
        }
    }
}
