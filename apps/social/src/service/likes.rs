use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::bell::tell_owner;
use super::pictures::find_picture;
use super::{publish, wake};
use crate::model::{Author, Effects, Id, NewEvent};
use crate::{App, Failure};

/// The result of a like.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize, ToSchema)]
pub struct LikeView {
    /// True if the caller likes the picture now.
    pub liked: bool,
    /// Number of users who like it.
    pub likes: i64,
    /// The position in the topic `/picture/ID/likes` at which this number holds.
    pub likes_seq: u64,
}

/// Likes a picture, or takes a like back. Repeating either changes nothing. The owner is notified
/// of a user's first like only.
///
/// # Errors
/// [`Failure::NotFound`] if there is no such picture.
pub async fn set_like(
    app: &App,
    user: &Author,
    picture: Id,
    liked: bool,
) -> Result<LikeView, Failure> {
    let picture = find_picture(app, picture).await?;
    let mut effects = Effects::default();
    if liked {
        let key = NewEvent::key_of_like(picture.id, user.id);
        effects = tell_owner(app, user, &picture, "like", &key).await?;
    }
    let like = NewEvent::like(picture.id, user.id, liked);
    effects.events.push(like);
    let kinds: Vec<_> = effects.tasks.iter().map(|task| task.kind).collect();
    let change = app
        .store
        .set_like(picture.id, user.id, liked, effects)
        .await?;
    if change.changed {
        publish(app, &change.events).await;
        wake(app, &kinds);
    }
    Ok(LikeView {
        liked,
        likes: change.likes.total,
        likes_seq: change.likes.seq,
    })
}
