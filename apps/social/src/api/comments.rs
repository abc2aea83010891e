use axum::Json;
use axum::extract::{Path, Query, State};
use http::StatusCode;
use serde::Deserialize;
use utoipa::ToSchema;

use super::paging::After;
use crate::auth::Caller;
use crate::model::{Comment, Id};
use crate::service::{self, CommentPage};
use crate::{App, Failure, Problem};

/// A comment to create.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewComment {
    /// The text: 1 to 1,000 characters.
    text: String,
}

/// Returns a picture's comments, the oldest first.
#[utoipa::path(
    get, path = "/api/pictures/{id}/comments", tag = "comments", params(("id" = Id, Path), After),
    responses(
        (status = 200, body = CommentPage),
        (status = 404, body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn comments(
    State(app): State<App>,
    Path(id): Path<Id>,
    Query(part): Query<After>,
) -> Result<Json<CommentPage>, Failure> {
    let page = service::comments(&app, id, part.id(), part.limit());
    Ok(Json(page.await?))
}

/// Comments on a picture.
#[utoipa::path(
    post, path = "/api/pictures/{id}/comments", tag = "comments", operation_id = "create_comment",
    params(("id" = Id, Path)),
    request_body = NewComment, security(("session" = [], "csrf" = []), ("signature" = [])),
    responses(
        (status = 201, body = Comment),
        (status = 404, body = Problem, content_type = "application/problem+json"),
        (status = 422, description = "The text is not allowed", body = Problem,
            content_type = "application/problem+json"),
    )
)]
pub(super) async fn create(
    State(app): State<App>,
    Caller(author): Caller,
    Path(id): Path<Id>,
    Json(new): Json<NewComment>,
) -> Result<(StatusCode, Json<Comment>), Failure> {
    let comment = service::comment(&app, &author, id, &new.text).await?;
    Ok((StatusCode::CREATED, Json(comment)))
}

/// Deletes a comment: its author may, and the picture's owner.
#[utoipa::path(
    delete, path = "/api/comments/{id}", tag = "comments", operation_id = "delete_comment",
    params(("id" = Id, Path)),
    security(("session" = [], "csrf" = []), ("signature" = [])),
    responses(
        (status = 204, description = "It is gone"),
        (status = 403, description = "Neither it nor the picture is the caller's", body = Problem,
            content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn delete(
    State(app): State<App>,
    Caller(author): Caller,
    Path(id): Path<Id>,
) -> Result<StatusCode, Failure> {
    service::delete_comment(&app, author.id, id).await?;
    Ok(StatusCode::NO_CONTENT)
}
