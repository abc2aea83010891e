use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

use super::pages::{PAGE_MAX, Page, PictureView, liked, listed};
use crate::model::Id;
use crate::store::PicturesOf;
use crate::{App, Failure};

/// The key of the first page in the cache.
const TIMELINE_KEY: &str = "timeline";
/// Longest age of the first page in the cache; of counts the feed delivers newer ones, because each
/// comes with its position in the log.
const TIMELINE_TTL: Duration = Duration::from_secs(1);

/// The longest first page, as those see it who like none of its pictures, and each picture of it as
/// JSON, so that it is written once for all who ask: of a request for 30 pictures that was half.
#[derive(Debug, Deserialize)]
#[serde(try_from = "Page")]
struct Newest {
    page: Page,
    json: Vec<Box<RawValue>>,
}

/// A [`Page`] whose pictures are JSON already.
#[derive(Serialize)]
struct Written<'a> {
    pictures: Vec<Cow<'a, RawValue>>,
    next: Option<Id>,
    timeline_seq: u64,
}

impl TryFrom<Page> for Newest {
    type Error = serde_json::Error;

    fn try_from(page: Page) -> Result<Self, Self::Error> {
        let json = page.pictures.iter().map(to_raw_value);
        let json = json.collect::<Result<_, _>>()?;
        Ok(Self { page, json })
    }
}

impl Serialize for Newest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let pictures = self.json.iter().map(|json| Cow::Borrowed(&**json));
        let written = Written {
            pictures: pictures.collect(),
            next: self.page.next,
            timeline_seq: self.page.timeline_seq,
        };
        written.serialize(serializer)
    }
}

impl Newest {
    /// Returns the first pictures, at least one of them, and the `before` of the next page, if
    /// there is one.
    fn first(&self, limit: u32) -> (&[PictureView], Option<Id>) {
        let all = &self.page.pictures;
        let first = &all[..all.len().min(limit.max(1) as usize)];
        let last = first.last().map(|view| view.picture.id);
        let next = if first.len() < all.len() {
            last
        } else {
            self.page.next
        };
        (first, next)
    }

    fn page(&self, limit: u32, liked: &HashSet<Id>) -> Page {
        let (first, next) = self.first(limit);
        Page {
            pictures: first.iter().map(|view| seen(view, liked)).collect(),
            next,
            timeline_seq: self.page.timeline_seq,
        }
    }

    fn json(&self, limit: u32, liked: &HashSet<Id>) -> serde_json::Result<Vec<u8>> {
        let (first, next) = self.first(limit);
        let written = first.iter().zip(&self.json).map(|(view, json)| {
            let is_liked = liked.contains(&view.picture.id);
            Ok(if is_liked {
                Cow::Owned(to_raw_value(&seen(view, liked))?)
            } else {
                Cow::Borrowed(&**json)
            })
        });
        serde_json::to_vec(&Written {
            pictures: written.collect::<serde_json::Result<_>>()?,
            next,
            timeline_seq: self.page.timeline_seq,
        })
    }
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
    if before.is_some() {
        return listed(app, viewer, PicturesOf::Everybody, before, limit).await;
    }
    let (newest, liked) = newest(app, viewer, limit).await?;
    Ok(newest.page(limit, &liked))
}

/// Returns the same as JSON: of the first page the pictures are written once for all who ask.
///
/// # Errors
/// Those of the storage.
pub async fn timeline_json(
    app: &App,
    viewer: Option<Id>,
    before: Option<Id>,
    limit: u32,
) -> Result<Vec<u8>, Failure> {
    if before.is_some() {
        let page = timeline(app, viewer, before, limit).await?;
        return serde_json::to_vec(&page).map_err(Failure::internal);
    }
    let (newest, liked) = newest(app, viewer, limit).await?;
    newest.json(limit, &liked).map_err(Failure::internal)
}

/// Returns the longest first page, and which of its first pictures the viewer likes.
async fn newest(
    app: &App,
    viewer: Option<Id>,
    limit: u32,
) -> Result<(Arc<Newest>, HashSet<Id>), Failure> {
    let load = || load(app.clone());
    let newest = app.cache.get_or_renew(TIMELINE_KEY, TIMELINE_TTL, load);
    let newest = newest.await?;
    let (first, _) = newest.first(limit);
    let liked = liked(app, viewer, first.iter().map(|view| view.picture.id)).await?;
    Ok((newest, liked))
}

/// Forgets these keys of the cache and the first page, which is then loaded before the next reader
/// asks for it.
pub(super) async fn forget_with(app: &App, mut keys: Vec<String>) {
    keys.push(TIMELINE_KEY.to_owned());
    app.cache.invalidate(&keys).await;
    let load = load(app.clone());
    app.cache.load_ahead(TIMELINE_KEY, TIMELINE_TTL, load);
}

async fn load(app: App) -> Result<Arc<Newest>, Failure> {
    let page = listed(&app, None, PicturesOf::Everybody, None, PAGE_MAX).await?;
    Newest::try_from(page)
        .map(Arc::new)
        .map_err(Failure::internal)
}

/// Returns a picture as the user sees it who likes these.
fn seen(view: &PictureView, liked: &HashSet<Id>) -> PictureView {
    PictureView {
        liked: liked.contains(&view.picture.id),
        ..view.clone()
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::model::{Author, Media, Picture};

    fn view() -> PictureView {
        let owner = Author {
            id: Id::new(),
            name: "ada".to_owned(),
        };
        let picture = Picture {
            id: Id::new(),
            album: Id::new(),
            owner,
            caption: "</script>\n\u{2028}".to_owned(),
            alt: String::new(),
            media: Media::Png,
            width: 2,
            height: 1,
            bytes: 3,
            created_at: Timestamp::UNIX_EPOCH,
        };
        PictureView {
            picture: Arc::new(picture),
            likes: 4,
            likes_seq: 5,
            comments: 6,
            comments_seq: 7,
            liked: false,
        }
    }

    #[test]
    fn what_was_written_before_is_what_would_be_written_now() {
        let next = Some(Id::new());
        let page = Page {
            pictures: vec![view(), view(), view()],
            next,
            timeline_seq: 8,
        };
        let ids: Vec<Id> = page.pictures.iter().map(|view| view.picture.id).collect();
        let newest = Newest::try_from(page).expect("it can be written");
        for liked in [vec![], vec![ids[1]], ids.clone()] {
            let liked = liked.into_iter().collect();
            for limit in 1..=4 {
                let page = newest.page(limit, &liked);
                let written = serde_json::to_vec(&page).expect("it can be written");
                assert_eq!(
                    newest.json(limit, &liked).expect("so can its parts"),
                    written
                );
                assert_eq!(page.pictures[0].liked, liked.contains(&ids[0]));
            }
        }
        let none = HashSet::new();
        assert_eq!(newest.page(2, &none).next, Some(ids[1]));
        assert_eq!(newest.page(3, &none).next, next);
        let read: Newest =
            serde_json::from_slice(&serde_json::to_vec(&newest).expect("another process reads it"))
                .expect("as it was");
        assert_eq!(read.page, newest.page);
    }
}
