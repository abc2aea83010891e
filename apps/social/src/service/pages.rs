use std::collections::{HashMap, HashSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use utoipa::ToSchema;

use crate::model::{Head, Id, Picture, topic};
use crate::store::PicturesOf;
use crate::{App, Failure};

/// The most pictures or comments of a page.
pub const PAGE_MAX: u32 = 60;

/// The first page of the timeline in the cache.
pub(super) const TIMELINE_KEY: &str = "timeline";
/// Its first page is read from the cache for at most so long.
const TIMELINE_TTL: Duration = Duration::from_secs(10);
/// What is kept of it: enough for any page.
const TIMELINE_KEPT: u32 = PAGE_MAX + 1;
/// Counts are read from the cache for at most so long; the feed brings what is newer, because each count comes with its place in the log.
const HEADS_TTL: Duration = Duration::from_secs(1);

/// A part of a longer list.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize, ToSchema)]
pub struct Page {
    /// The newest first.
    pub pictures: Vec<PictureView>,
    /// Give this as `before` to get the next page; none if this is the last.
    pub next: Option<Id>,
    /// The place in the topic `/timeline` that this page shows: watch it from here.
    pub timeline_seq: u64,
}

/// A picture as users see it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize, ToSchema)]
pub struct PictureView {
    /// What was uploaded.
    #[serde(flatten)]
    pub picture: Picture,
    /// How many like it.
    pub likes: i64,
    /// The place in the topic `/picture/ID/likes` at which it was so many: watch it from here.
    pub likes_seq: u64,
    /// How many comments there are.
    pub comments: i64,
    /// The place in the topic `/picture/ID/comments` at which there were so many: watch it from here.
    pub comments_seq: u64,
    /// Whether the one who asks likes it.
    pub liked: bool,
}

/// What everybody has uploaded.
///
/// # Errors
/// Those of the storage.
pub async fn timeline(
    app: &App,
    viewer: Option<Id>,
    before: Option<Id>,
    limit: u32,
) -> Result<Page, Failure> {
    let limit = limit.clamp(1, PAGE_MAX);
    let of = PicturesOf::Everybody;
    match before {
        Some(_) => listed(app, viewer, of, before, limit).await,
        None => page(app, viewer, newest(app).await?, limit, true).await,
    }
}

/// Pictures, and the place in the topic that they show. They are kept together: a list from the cache beside a place from the
/// storage could lack a picture that the feed would not tell of either.
#[derive(Clone, Deserialize, Serialize)]
struct Listed {
    seq: u64,
    pictures: Vec<Picture>,
}

async fn newest(app: &App) -> Result<Listed, Failure> {
    let load = list(app, PicturesOf::Everybody, None, TIMELINE_KEPT);
    app.cache
        .get_or_load(TIMELINE_KEY, TIMELINE_TTL, load)
        .await
}

async fn list(
    app: &App,
    of: PicturesOf,
    before: Option<Id>,
    limit: u32,
) -> Result<Listed, Failure> {
    // Before the pictures: a picture that comes in between is in both, and not in neither.
    let heads = read_heads(app, &[topic::TIMELINE.to_owned()]).await?;
    Ok(Listed {
        seq: heads.get(topic::TIMELINE).map_or(0, |head| head.seq),
        pictures: app.store.pictures(of, before, limit).await?,
    })
}

/// An album's pictures.
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
    listed(app, viewer, PicturesOf::Album(album), before, limit).await
}

/// A user's pictures.
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

async fn listed(
    app: &App,
    viewer: Option<Id>,
    of: PicturesOf,
    before: Option<Id>,
    limit: u32,
) -> Result<Page, Failure> {
    let limit = limit.clamp(1, PAGE_MAX);
    let listed = list(app, of, before, limit + 1).await?;
    page(app, viewer, listed, limit, false).await
}

/// One picture.
///
/// # Errors
/// Those of the storage.
pub async fn one(app: &App, viewer: Option<Id>, picture: Picture) -> Result<PictureView, Failure> {
    let counts = read_heads(app, &topics(std::slice::from_ref(&picture))).await?;
    let liked = liked(app, viewer, std::slice::from_ref(&picture)).await?;
    Ok(view(picture, &counts, &liked))
}

/// One picture more than `limit` says that there is a next page.
async fn page(
    app: &App,
    viewer: Option<Id>,
    listed: Listed,
    limit: u32,
    is_hot: bool,
) -> Result<Page, Failure> {
    let limit = limit as usize;
    let Listed { seq, mut pictures } = listed;
    let has_more = pictures.len() > limit;
    pictures.truncate(limit);
    let next = pictures
        .last()
        .filter(|_| has_more)
        .map(|picture| picture.id);
    let topics = topics(&pictures);
    let counts = if is_hot {
        heads(app, &topics).await?
    } else {
        read_heads(app, &topics).await?
    };
    let liked = liked(app, viewer, &pictures).await?;
    let view = |picture| view(picture, &counts, &liked);
    Ok(Page {
        pictures: pictures.into_iter().map(view).collect(),
        next,
        timeline_seq: seq,
    })
}

fn topics(pictures: &[Picture]) -> Vec<String> {
    let both = |picture: &Picture| [topic::likes(picture.id), topic::comments(picture.id)];
    pictures.iter().flat_map(both).collect()
}

/// From the cache: kept for exactly these topics, so that a page whose pictures have moved has counts of its own.
async fn heads(app: &App, topics: &[String]) -> Result<HashMap<String, Head>, Failure> {
    let names = Sha256::digest(topics.concat());
    let key = format!("heads:{}", hex::encode(names));
    let load = read_heads(app, topics);
    app.cache.get_or_load(&key, HEADS_TTL, load).await
}

async fn read_heads(app: &App, topics: &[String]) -> Result<HashMap<String, Head>, Failure> {
    Ok(app.store.heads(topics).await?)
}

async fn liked(
    app: &App,
    viewer: Option<Id>,
    pictures: &[Picture],
) -> Result<HashSet<Id>, Failure> {
    let Some(viewer) = viewer else {
        return Ok(HashSet::new());
    };
    let ids: Vec<Id> = pictures.iter().map(|picture| picture.id).collect();
    Ok(app.store.liked(viewer, &ids).await?.into_iter().collect())
}

fn view(picture: Picture, counts: &HashMap<String, Head>, liked_ones: &HashSet<Id>) -> PictureView {
    let head = |topic: String| counts.get(&topic).copied().unwrap_or_default();
    let (likes, comments) = (
        head(topic::likes(picture.id)),
        head(topic::comments(picture.id)),
    );
    PictureView {
        liked: liked_ones.contains(&picture.id),
        likes: likes.total,
        likes_seq: likes.seq,
        comments: comments.total,
        comments_seq: comments.seq,
        picture,
    }
}
