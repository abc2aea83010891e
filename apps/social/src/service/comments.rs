use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use super::bell::tell_owner;
use super::pages::PAGE_MAX;
use super::pictures::find_picture;
use super::{now, publish, wake};
use crate::model::{Author, Comment, Effects, Id, NewEvent, check_text, topic};
use crate::{App, Failure};

/// A page of a picture's comments.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize, ToSchema)]
pub struct CommentPage {
    /// The comments, the oldest first.
    pub comments: Vec<Comment>,
    /// The `after` of the next page; `None` if this is the last.
    pub next: Option<Id>,
}

/// Adds a comment to a picture.
///
/// # Errors
/// [`Failure::NotFound`] if there is no such picture, [`Failure::Invalid`] if the text is not
/// allowed.
pub async fn comment(
    app: &App,
    author: &Author,
    picture: Id,
    text: &str,
) -> Result<Comment, Failure> {
    let picture = find_picture(app, picture).await?;
    let comment = Comment {
        id: Id::new(),
        picture: picture.id,
        author: author.clone(),
        text: check_text("text", text, 1, 1_000)?,
        created_at: now(),
    };
    let key = comment.id.to_string();
    let mut effects = tell_owner(app, author, &picture, "comment", &key).await?;
    let kinds: Vec<_> = effects.tasks.iter().map(|task| task.kind).collect();
    effects.events.push(NewEvent {
        topic: topic::comments(picture.id),
        key,
        delta: 1,
        body: json!({"comment": comment}),
    });
    let events = app.store.insert_comment(&comment, effects).await?;
    publish(app, &events).await;
    wake(app, &kinds);
    Ok(comment)
}

/// Returns a page of a picture's comments.
///
/// # Errors
/// [`Failure::NotFound`] if there is no such picture.
pub async fn comments(
    app: &App,
    picture: Id,
    after: Option<Id>,
    limit: u32,
) -> Result<CommentPage, Failure> {
    let picture = find_picture(app, picture).await?;
    let limit = limit.clamp(1, PAGE_MAX);
    let mut comments = app.store.comments(picture.id, after, limit + 1).await?;
    let has_more = comments.len() > limit as usize;
    comments.truncate(limit as usize);
    let next = comments
        .last()
        .filter(|_| has_more)
        .map(|comment| comment.id);
    Ok(CommentPage { comments, next })
}

/// Deletes a comment: its author may, and the picture's owner.
///
/// # Errors
/// [`Failure::NotFound`], [`Failure::Forbidden`].
pub async fn delete_comment(app: &App, user: Id, id: Id) -> Result<(), Failure> {
    let comment = app
        .store
        .comment(id)
        .await?
        .ok_or(Failure::NotFound("comment"))?;
    let picture = find_picture(app, comment.picture).await?;
    if ![comment.author.id, picture.owner.id].contains(&user) {
        return Err(Failure::Forbidden(
            "only its author and the picture's owner may delete a comment",
        ));
    }
    let effects = Effects {
        events: vec![NewEvent::comment_deleted(&comment)],
        tasks: Vec::new(),
    };
    let events = app.store.delete_comment(id, effects).await?;
    publish(app, &events.ok_or(Failure::NotFound("comment"))?).await;
    Ok(())
}
