use axum::Json;
use axum::extract::{Path, State};

use crate::auth::Caller;
use crate::model::Id;
use crate::service::{self, LikeView};
use crate::{App, Failure, Problem};

/// Likes a picture; doing so twice is the same as once.
#[utoipa::path(
    put, path = "/api/pictures/{id}/like", tag = "likes", params(("id" = Id, Path)),
    security(("session" = [], "csrf" = []), ("signature" = [])),
    responses(
        (status = 200, body = LikeView),
        (status = 404, body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn like(
    State(app): State<App>,
    Caller(author): Caller,
    Path(id): Path<Id>,
) -> Result<Json<LikeView>, Failure> {
    Ok(Json(service::set_like(&app, &author, id, true).await?))
}

/// Takes a like back; doing so twice is the same as once.
#[utoipa::path(
    delete, path = "/api/pictures/{id}/like", tag = "likes", params(("id" = Id, Path)),
    security(("session" = [], "csrf" = []), ("signature" = [])),
    responses(
        (status = 200, body = LikeView),
        (status = 404, body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn unlike(
    State(app): State<App>,
    Caller(author): Caller,
    Path(id): Path<Id>,
) -> Result<Json<LikeView>, Failure> {
    Ok(Json(service::set_like(&app, &author, id, false).await?))
}
