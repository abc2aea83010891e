use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::model::{Head, Id, Picture, topic};
use crate::store::{Listed, PicturesOf};
use crate::{App, Failure};

/// The most pictures or comments of a page.
pub const PAGE_MAX: u32 = 60;

/// A page of a longer list of pictures.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize, ToSchema)]
pub struct Page {
    /// The pictures, the newest first.
    pub pictures: Vec<PictureView>,
    /// The `before` of the next page; `None` if this is the last.
    pub next: Option<Id>,
    /// The position in the topic `/timeline` that this page shows: watch it from here.
    pub timeline_seq: u64,
}

/// A picture with its counts, as a user sees it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize, ToSchema)]
pub struct PictureView {
    /// The picture itself.
    #[serde(flatten)]
    pub picture: Arc<Picture>,
    /// Number of users who like it.
    pub likes: i64,
    /// The position in the topic `/picture/ID/likes` at which this number holds: watch it from
    /// here.
    pub likes_seq: u64,
    /// Number of comments.
    pub comments: i64,
    /// The position in the topic `/picture/ID/comments` at which this number holds: watch it from
    /// here.
    pub comments_seq: u64,
    /// True if the caller likes it.
    pub liked: bool,
}

/// Returns a page of an album's pictures.
///
/// # Errors
/// Those of the storage.
pub async fn of_album(
    app: &App,
    viewer: Option<Id>,
    album: Id,
    before: Option<Id>,
    limit: u32,
) -> Result<Page, Failure> {
    let limit = limit.clamp(1, PAGE_MAX);
    let shown = match (&app.albums, before) {
        (Some(albums), None) => albums.show(album, limit).await?,
        _ => None,
    };
    let Some(shown) = shown else {
        return listed(app, viewer, PicturesOf::Album(album), before, limit).await;
    };
    let (listed, next) = shown.listed.cut(limit);
    let counts = Counts::of_all(&listed.pictures, &shown.heads);
    page(app, viewer, listed, next, &counts).await
}

/// Returns a page of a user's pictures.
///
/// # Errors
/// Those of the storage.
pub async fn of_user(
    app: &App,
    viewer: Option<Id>,
    user: Id,
    before: Option<Id>,
    limit: u32,
) -> Result<Page, Failure> {
    listed(app, viewer, PicturesOf::Owner(user), before, limit).await
}

pub(super) async fn listed(
    app: &App,
    viewer: Option<Id>,
    of: PicturesOf,
    before: Option<Id>,
    limit: u32,
) -> Result<Page, Failure> {
    let limit = limit.clamp(1, PAGE_MAX);
    let listed = Listed::read(&*app.store, of, before, limit + 1).await?;
    let (listed, next) = listed.cut(limit);
    let counts = read_counts(app, &listed).await?;
    page(app, viewer, listed, next, &counts).await
}

/// Returns one picture with its counts.
///
/// # Errors
/// Those of the storage.
pub async fn one(
    app: &App,
    viewer: Option<Id>,
    picture: Arc<Picture>,
) -> Result<PictureView, Failure> {
    let heads = app.store.heads(&topic::counted(picture.id)).await?;
    let counts = Counts::of(&picture, &heads);
    let liked = liked(app, viewer, [picture.id]).await?;
    Ok(view(picture, counts, &liked))
}

async fn page(
    app: &App,
    viewer: Option<Id>,
    listed: Listed,
    next: Option<Id>,
    counts: &[Counts],
) -> Result<Page, Failure> {
    let Listed { seq, pictures } = listed;
    let liked = liked(app, viewer, pictures.iter().map(|picture| picture.id)).await?;
    let pictures = pictures.into_iter().zip(counts);
    let view = |(picture, counts): (_, &Counts)| view(picture, *counts, &liked);
    Ok(Page {
        pictures: pictures.map(view).collect(),
        next,
        timeline_seq: seq,
    })
}

/// The counts of a picture.
#[derive(Clone, Copy, Debug)]
struct Counts {
    likes: Head,
    comments: Head,
}

impl Counts {
    /// Finds those of a picture among the ends of topics.
    fn of(picture: &Picture, heads: &HashMap<String, Head>) -> Self {
        let head = |topic: String| heads.get(&topic).copied().unwrap_or_default();
        Self {
            likes: head(topic::likes(picture.id)),
            comments: head(topic::comments(picture.id)),
        }
    }

    /// Finds those of each picture, in the order of the pictures.
    fn of_all(pictures: &[Arc<Picture>], heads: &HashMap<String, Head>) -> Vec<Self> {
        let of = |picture: &Arc<Picture>| Self::of(picture, heads);
        pictures.iter().map(of).collect()
    }
}

async fn read_counts(app: &App, listed: &Listed) -> Result<Vec<Counts>, Failure> {
    let heads = app.store.heads(&listed.topics()).await?;
    Ok(Counts::of_all(&listed.pictures, &heads))
}

/// Returns which of these pictures the viewer likes.
pub(super) async fn liked(
    app: &App,
    viewer: Option<Id>,
    pictures: impl IntoIterator<Item = Id>,
) -> Result<HashSet<Id>, Failure> {
    let Some(viewer) = viewer else {
        return Ok(HashSet::new());
    };
    let ids: Vec<Id> = pictures.into_iter().collect();
    Ok(app.store.liked(viewer, &ids).await?.into_iter().collect())
}

fn view(picture: Arc<Picture>, counts: Counts, liked_ones: &HashSet<Id>) -> PictureView {
    let Counts { likes, comments } = counts;
    PictureView {
        liked: liked_ones.contains(&picture.id),
        likes: likes.total,
        likes_seq: likes.seq,
        comments: comments.total,
        comments_seq: comments.seq,
        picture,
    }
}
