use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use super::bell::tell_owner;
use super::pictures::find_picture;
use super::{publish, wake};
use crate::model::{Author, Id, NewEvent, topic};
use crate::{App, Failure};

/// What became of a like.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize, ToSchema)]
pub struct LikeView {
    /// Whether the one who asks likes the picture now.
    pub liked: bool,
    /// How many like it.
    pub likes: i64,
    /// The place in the topic `/picture/ID/likes` at which it is so many.
    pub likes_seq: u64,
}

/// Makes a user like a picture, or no longer. To say it twice changes nothing.
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
    let action = Id::new().to_string();
    let like = NewEvent {
        topic: topic::likes(picture.id),
        key: action.clone(),
        delta: if liked { 1 } else { -1 },
        body: json!({"by": user.name, "liked": liked}),
    };
    let mut effects = if liked {
        tell_owner(app, user, &picture, "like", &action).await?
    } else {
        crate::model::Effects::default()
    };
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
