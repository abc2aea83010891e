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
/// Longest age of the timeline's first page in the cache.
const TIMELINE_TTL: Duration = Duration::from_secs(10);
/// Pictures of it in the cache: enough for any page.
const TIMELINE_KEPT: u32 = PAGE_MAX + 1;
/// Longest age of counts in the cache; the feed delivers newer ones, because each count comes with
/// its position in the log.
const HEADS_TTL: Duration = Duration::from_secs(1);

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
    pub picture: Picture,
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

/// Returns a page of everybody's pictures.
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

/// Pictures, and the position in the topic that they show. They are cached together: a list from
/// the cache beside a position from the storage could lack a picture that the feed would not
/// deliver either.
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
    // Read before the pictures: one that comes in between is in both, and not in neither.
    let heads = read_heads(app, &[topic::TIMELINE.to_owned()]).await?;
    Ok(Listed {
        seq: heads.get(topic::TIMELINE).map_or(0, |head| head.seq),
        pictures: app.store.pictures(of, before, limit).await?,
    })
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
    listed(app, viewer, PicturesOf::Album(album), before, limit).await
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

/// Returns one picture with its counts.
///
/// # Errors
/// Those of the storage.
pub async fn one(app: &App, viewer: Option<Id>, picture: Picture) -> Result<PictureView, Failure> {
    let counts = read_heads(app, &topics(std::slice::from_ref(&picture))).await?;
    let liked = liked(app, viewer, std::slice::from_ref(&picture)).await?;
    Ok(view(picture, &counts, &liked))
}

/// Makes a page. One picture more than `limit` means that there is a next page.
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

/// Returns the ends of topics, from the cache if possible. The cache's key is the list of topics,
/// so that a page whose pictures have moved has counts of its own.
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
