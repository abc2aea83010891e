use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{PicturesOf, Result, Store};
use crate::model::{Id, Picture, topic};

/// Pictures, and the position in the topic of the timeline that they show. They are kept together:
/// an old list beside a new position could lack a picture that the feed would not deliver either.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Listed {
    pub(crate) seq: u64,
    pub(crate) pictures: Vec<Arc<Picture>>,
}

impl Listed {
    /// Reads pictures, the newest first, those before `before`.
    pub(crate) async fn read(
        store: &dyn Store,
        of: PicturesOf,
        before: Option<Id>,
        limit: u32,
    ) -> Result<Self> {
        // Read before the pictures: one that comes in between is in both, and not in neither.
        let heads = store.heads(&[topic::TIMELINE.to_owned()]).await?;
        let pictures = store.pictures(of, before, limit).await?;
        Ok(Self {
            seq: heads.get(topic::TIMELINE).map_or(0, |head| head.seq),
            pictures: pictures.into_iter().map(Arc::new).collect(),
        })
    }

    /// Returns the first pictures, and the same position.
    pub(crate) fn first(&self, limit: u32) -> Self {
        let pictures = self.pictures.iter().take(limit as usize);
        Self {
            seq: self.seq,
            pictures: pictures.cloned().collect(),
        }
    }

    /// Cuts off what is not of a page of this length. Returns the `before` of the next page, if
    /// there is one: then the list is longer.
    pub(crate) fn cut(mut self, limit: u32) -> (Self, Option<Id>) {
        let limit = limit as usize;
        let has_more = self.pictures.len() > limit;
        self.pictures.truncate(limit);
        let last = self.pictures.last().filter(|_| has_more);
        let next = last.map(|picture| picture.id);
        (self, next)
    }

    /// Returns the topics whose totals a page shows.
    pub(crate) fn topics(&self) -> Vec<String> {
        let of_one = |picture: &Arc<Picture>| topic::counted(picture.id);
        self.pictures.iter().flat_map(of_one).collect()
    }
}
