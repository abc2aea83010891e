use super::pictures::picture_key;
use super::timeline::forget_with;
use super::{now, publish, wake};
use crate::model::{Album, Author, Id, TaskKind, check_text};
use crate::store::PicturesOf;
use crate::{App, Failure};

/// The most albums of a user.
const ALBUMS_MAX: usize = 500;
/// Most pictures of a deleted album that are removed from the cache with it; others stay there for
/// some seconds more.
const FORGOTTEN_MAX: u32 = 10_000;

/// Makes an album.
///
/// # Errors
/// [`Failure::Invalid`] if the title is not allowed, [`Failure::Conflict`] if the user has too
/// many.
pub async fn create_album(app: &App, owner: Author, title: &str) -> Result<Album, Failure> {
    let title = check_text("title", title, 1, 100)?;
    if app.store.albums(owner.id).await?.len() >= ALBUMS_MAX {
        let text = format!("a user has at most {ALBUMS_MAX} albums");
        return Err(Failure::Conflict(text));
    }
    let album = Album {
        id: Id::new(),
        owner,
        title,
        created_at: now(),
    };
    app.store.insert_album(&album).await?;
    Ok(album)
}

/// Returns an album.
///
/// # Errors
/// [`Failure::NotFound`].
pub async fn album(app: &App, id: Id) -> Result<Album, Failure> {
    app.store.album(id).await?.ok_or(Failure::NotFound("album"))
}

/// Returns an album to which its owner may add pictures.
///
/// # Errors
/// [`Failure::NotFound`], and [`Failure::Forbidden`] for somebody else's.
pub async fn album_to_fill(app: &App, user: Id, id: Id) -> Result<Album, Failure> {
    let album = album(app, id).await?;
    if album.owner.id != user {
        return Err(Failure::Forbidden(
            "only its owner may add pictures to an album",
        ));
    }
    Ok(album)
}

/// Returns a user's albums, the newest first.
///
/// # Errors
/// Those of the storage.
pub async fn albums(app: &App, owner: Id) -> Result<Vec<Album>, Failure> {
    Ok(app.store.albums(owner).await?)
}

/// Deletes an album. Its pictures are gone when this returns; their files are deleted later, by the
/// actor Janitor. (The thesis' `deleteAlbum`; here the outbox remembers what is to be deleted, so a
/// crash does not forget it.)
///
/// # Errors
/// [`Failure::NotFound`], and [`Failure::Forbidden`] for somebody else's.
pub async fn delete_album(app: &App, user: Id, id: Id) -> Result<(), Failure> {
    let album = album(app, id).await?;
    if album.owner.id != user {
        return Err(Failure::Forbidden("only its owner may delete an album"));
    }
    let pictures = app
        .store
        .pictures(PicturesOf::Album(id), None, FORGOTTEN_MAX)
        .await?;
    let events = app.store.delete_album(id).await?;
    let events = events.ok_or(Failure::NotFound("album"))?;
    let keys = pictures.iter().map(|picture| picture_key(picture.id));
    // Not from memory: whoever shows an album has read its record, which is gone.
    forget_with(app, keys.collect()).await;
    publish(app, &events).await;
    wake(app, &[TaskKind::Remove]);
    Ok(())
}
