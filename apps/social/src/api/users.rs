use axum::Json;
use axum::extract::{Path, Query, State};
use axum::response::IntoResponse;
use http::StatusCode;
use http::header::LOCATION;
use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use super::paging::Before;
use crate::auth::{self, Client, MaybeCaller};
use crate::model::{Album, Id, User};
use crate::service::{self, NewUser, Page};
use crate::{App, Failure, Problem};

/// A user, as others see them.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct UserView {
    /// The identifier, which never changes.
    id: Id,
    /// The unique name, which never changes.
    name: String,
    /// The name that others read.
    display: String,
    /// The user's text about themself.
    about: String,
    /// The time of the sign-up.
    #[schema(value_type = String, format = DateTime)]
    joined_at: Timestamp,
}

impl From<User> for UserView {
    fn from(user: User) -> Self {
        Self {
            id: user.id,
            name: user.name,
            display: user.display,
            about: user.about,
            joined_at: user.joined_at,
        }
    }
}

/// Signs up. (The thesis' program 4.1.)
#[utoipa::path(
    post, path = "/api/users", tag = "users", operation_id = "sign_up", request_body = NewUser,
    responses(
        (status = 201, body = UserView,
            headers(("Location" = String, description = "The user's address"))),
        (status = 409, description = "The name is taken", body = Problem,
            content_type = "application/problem+json"),
        (status = 422, description = "A field is not allowed", body = Problem,
            content_type = "application/problem+json"),
        (status = 500, description = "Our fault", body = Problem,
            content_type = "application/problem+json"),
    )
)]
pub(super) async fn sign_up(
    State(app): State<App>,
    client: Client,
    Json(new): Json<NewUser>,
) -> Result<impl IntoResponse, Failure> {
    let user = auth::sign_up(&app, client, new).await?;
    let location = [(LOCATION, format!("/api/users/{}", user.name))];
    Ok((StatusCode::CREATED, location, Json(UserView::from(user))))
}

/// Returns a user.
#[utoipa::path(
    get, path = "/api/users/{name}", tag = "users",
    params(("name" = String, Path, description = "The user's name")),
    responses(
        (status = 200, body = UserView),
        (status = 404, body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn user(
    State(app): State<App>,
    Path(name): Path<String>,
) -> Result<Json<UserView>, Failure> {
    Ok(Json(service::user(&app, &name).await?.into()))
}

/// Returns a user's albums, the newest first.
#[utoipa::path(
    get, path = "/api/users/{name}/albums", tag = "users", operation_id = "albums_of_user",
    params(("name" = String, Path, description = "The user's name")),
    responses(
        (status = 200, body = Vec<Album>),
        (status = 404, body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn albums(
    State(app): State<App>,
    Path(name): Path<String>,
) -> Result<Json<Vec<Album>>, Failure> {
    let user = service::user(&app, &name).await?;
    Ok(Json(service::albums(&app, user.id).await?))
}

/// Returns a user's pictures, the newest first.
#[utoipa::path(
    get, path = "/api/users/{name}/pictures", tag = "users", operation_id = "pictures_of_user",
    params(("name" = String, Path, description = "The user's name"), Before),
    responses(
        (status = 200, body = Page),
        (status = 404, body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn pictures(
    State(app): State<App>,
    caller: MaybeCaller,
    Path(name): Path<String>,
    Query(part): Query<Before>,
) -> Result<Json<Page>, Failure> {
    let user = service::user(&app, &name).await?;
    let page = service::of_user(&app, caller.id(), user.id, part.id(), part.limit());
    Ok(Json(page.await?))
}
