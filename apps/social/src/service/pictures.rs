use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{OptionFuture, join};
use url::Url;

use super::timeline::forget_with;
use super::{publish, wake};
use crate::model::{Id, Picture, TaskKind, TextError, check_text};
use crate::{App, Failure};

/// Longest age of a picture's record in the cache.
const PICTURE_TTL: Duration = Duration::from_secs(10);

/// Returns a picture's record, at most some seconds old.
///
/// # Errors
/// [`Failure::NotFound`].
pub async fn find_picture(app: &App, id: Id) -> Result<Arc<Picture>, Failure> {
    let load = async {
        let found = app.store.picture(id).await?;
        found.map(Arc::new).ok_or(Failure::NotFound("picture"))
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
    forget(app, picture.album, Some(id)).await;
    publish(app, &events.ok_or(Failure::NotFound("picture"))?).await;
    wake(app, &[TaskKind::Remove]);
    Ok(())
}

pub(super) fn check_alt(alt: &str) -> Result<String, TextError> {
    check_text("alt", alt, 0, 500)
}

/// Changes a picture's description.
///
/// # Errors
/// [`Failure::Invalid`], [`Failure::NotFound`], and [`Failure::Forbidden`] for somebody else's.
pub async fn describe_picture(
    app: &App,
    user: Id,
    id: Id,
    alt: &str,
) -> Result<Arc<Picture>, Failure> {
    let picture = find_picture(app, id).await?;
    if picture.owner.id != user {
        return Err(Failure::Forbidden("only its owner may describe a picture"));
    }
    let described = app.store.set_alt(id, &check_alt(alt)?).await?;
    forget(app, picture.album, Some(id)).await;
    described.map(Arc::new).ok_or(Failure::NotFound("picture"))
}

/// Has all processes read an album's pictures anew, and the record of the changed one.
pub(super) async fn forget(app: &App, album: Id, picture: Option<Id>) {
    let keys = picture.map(picture_key).into_iter().collect();
    let albums = app.albums.as_ref().map(|albums| albums.forget(album));
    join(forget_with(app, keys), OptionFuture::from(albums)).await;
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
