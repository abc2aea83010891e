use axum::Json;
use axum::extract::{Path, Query, State};
use axum::response::IntoResponse;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use serde::{Deserialize, Serialize};
use url::Url;
use utoipa::ToSchema;

use super::paging::Before;
use crate::auth::{Caller, MaybeCaller};
use crate::model::Id;
use crate::service::{self, Page, PictureView};
use crate::{App, Failure, Problem};

/// The address of a shared picture.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Shared {
    /// The address at the third party.
    #[schema(value_type = String, format = "uri")]
    url: Url,
}

/// Returns everybody's pictures, the newest first.
#[utoipa::path(
    get, path = "/api/timeline", tag = "pictures", params(Before),
    responses((status = 200, body = Page))
)]
pub(super) async fn timeline(
    State(app): State<App>,
    caller: MaybeCaller,
    Query(part): Query<Before>,
) -> Result<impl IntoResponse, Failure> {
    let page = service::timeline_json(&app, caller.id(), part.id(), part.limit()).await?;
    Ok(([(CONTENT_TYPE, "application/json")], page))
}

/// Returns a picture.
#[utoipa::path(
    get, path = "/api/pictures/{id}", tag = "pictures", params(("id" = Id, Path)),
    responses(
        (status = 200, body = PictureView),
        (status = 404, body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn picture(
    State(app): State<App>,
    caller: MaybeCaller,
    Path(id): Path<Id>,
) -> Result<Json<PictureView>, Failure> {
    let picture = service::find_picture(&app, id).await?;
    Ok(Json(service::one(&app, caller.id(), picture).await?))
}

/// The fields of a picture to change.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PictureChange {
    /// A text for readers who cannot see it: up to 500 characters.
    alt: String,
}

/// Describes what a picture shows.
#[utoipa::path(
    patch, path = "/api/pictures/{id}", tag = "pictures", operation_id = "describe_picture",
    params(("id" = Id, Path)),
    request_body = PictureChange,
    security(("session" = [], "csrf" = []), ("signature" = [])),
    responses(
        (status = 200, body = PictureView),
        (status = 403, description = "It is somebody else's", body = Problem,
            content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json"),
        (status = 422, description = "The text is too long", body = Problem,
            content_type = "application/problem+json"),
    )
)]
pub(super) async fn describe(
    State(app): State<App>,
    Caller(author): Caller,
    Path(id): Path<Id>,
    Json(change): Json<PictureChange>,
) -> Result<Json<PictureView>, Failure> {
    let picture = service::describe_picture(&app, author.id, id, &change.alt).await?;
    Ok(Json(service::one(&app, Some(author.id), picture).await?))
}

/// Deletes a picture: it is gone at once, its files are deleted later.
#[utoipa::path(
    delete, path = "/api/pictures/{id}", tag = "pictures", operation_id = "delete_picture",
    params(("id" = Id, Path)),
    security(("session" = [], "csrf" = []), ("signature" = [])),
    responses(
        (status = 204, description = "It is gone"),
        (status = 403, description = "It is somebody else's", body = Problem,
            content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn delete(
    State(app): State<App>,
    Caller(author): Caller,
    Path(id): Path<Id>,
) -> Result<StatusCode, Failure> {
    service::delete_picture(&app, author.id, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Shares a picture with the third party.
#[utoipa::path(
    post, path = "/api/pictures/{id}/share", tag = "pictures", params(("id" = Id, Path)),
    security(("session" = [], "csrf" = []), ("signature" = [])),
    responses(
        (status = 200, body = Shared),
        (status = 404, description = "There is no such picture, or no third party", body = Problem,
            content_type = "application/problem+json"),
        (status = 502, description = "The third party failed", body = Problem,
            content_type = "application/problem+json"),
        (status = 503, description = "It has failed so often that it is left alone for a while",
            body = Problem, content_type = "application/problem+json"),
        (status = 504, description = "It did not respond in time", body = Problem,
            content_type = "application/problem+json"),
    )
)]
pub(super) async fn share(
    State(app): State<App>,
    _caller: Caller,
    Path(id): Path<Id>,
) -> Result<Json<Shared>, Failure> {
    let url = service::share(&app, id).await?;
    Ok(Json(Shared { url }))
}
