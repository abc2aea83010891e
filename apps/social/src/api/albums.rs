use axum::Json;
use axum::extract::{Path, Query, State};
use axum::response::IntoResponse;
use http::StatusCode;
use http::header::LOCATION;
use serde::Deserialize;
use utoipa::ToSchema;

use super::paging::Before;
use crate::auth::{Caller, MaybeCaller};
use crate::model::{Album, Id};
use crate::service::{self, Page};
use crate::{App, Failure, Problem};

/// An album to create.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewAlbum {
    /// The title: 1 to 100 characters.
    title: String,
}

/// Creates an album.
#[utoipa::path(
    post, path = "/api/albums", tag = "albums", operation_id = "create_album",
    request_body = NewAlbum,
    security(("session" = [], "csrf" = []), ("signature" = [])),
    responses(
        (status = 201, body = Album,
            headers(("Location" = String, description = "The album's address"))),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 409, description = "There are too many", body = Problem,
            content_type = "application/problem+json"),
        (status = 422, description = "The title is not allowed", body = Problem,
            content_type = "application/problem+json"),
    )
)]
pub(super) async fn create(
    State(app): State<App>,
    Caller(author): Caller,
    Json(new): Json<NewAlbum>,
) -> Result<impl IntoResponse, Failure> {
    let album = service::create_album(&app, author, &new.title).await?;
    let location = [(LOCATION, format!("/api/albums/{}", album.id))];
    Ok((StatusCode::CREATED, location, Json(album)))
}

/// Returns an album.
#[utoipa::path(
    get, path = "/api/albums/{id}", tag = "albums", params(("id" = Id, Path)),
    responses(
        (status = 200, body = Album),
        (status = 404, body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn album(
    State(app): State<App>,
    Path(id): Path<Id>,
) -> Result<Json<Album>, Failure> {
    Ok(Json(service::album(&app, id).await?))
}

/// Deletes an album and its pictures: they are gone at once, their files are deleted later.
/// (`deleteAlbum` of the thesis, section 4.2.2.)
#[utoipa::path(
    delete, path = "/api/albums/{id}", tag = "albums", operation_id = "delete_album",
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
    service::delete_album(&app, author.id, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Returns an album's pictures, the newest first.
#[utoipa::path(
    get, path = "/api/albums/{id}/pictures", tag = "albums", operation_id = "pictures_of_album",
    params(("id" = Id, Path), Before),
    responses(
        (status = 200, body = Page),
        (status = 404, body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn pictures(
    State(app): State<App>,
    caller: MaybeCaller,
    Path(id): Path<Id>,
    Query(part): Query<Before>,
) -> Result<Json<Page>, Failure> {
    let album = service::album(&app, id).await?;
    let page = service::of_album(&app, caller.id(), album.id, part.id(), part.limit());
    Ok(Json(page.await?))
}
