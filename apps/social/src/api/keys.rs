use axum::Json;
use axum::extract::{Path, State};
use http::StatusCode;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::auth::Caller;
use crate::model::{ApiKey, Id};
use crate::service;
use crate::{App, Failure, Problem};

/// A key that a program signs requests with.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct KeyView {
    /// The `keyid` of signatures.
    id: Id,
    /// The name that its user has given it.
    name: String,
    /// The time of its creation.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
}

impl From<&ApiKey> for KeyView {
    fn from(key: &ApiKey) -> Self {
        Self {
            id: key.id,
            name: key.name.clone(),
            created_at: key.created_at,
        }
    }
}

/// A key that has just been created.
#[derive(Serialize, ToSchema)]
pub(super) struct NewKeyView {
    /// The fields that stay visible.
    #[serde(flatten)]
    key: KeyView,
    /// The key of HMAC-SHA256, as 64 hexadecimal digits. It is shown only this once.
    secret: String,
}

/// A key to create.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewKey {
    /// Its purpose: 1 to 60 characters.
    name: String,
}

/// Returns the caller's keys, the oldest first.
#[utoipa::path(
    get, path = "/api/me/keys", tag = "me", security(("session" = []), ("signature" = [])),
    responses(
        (status = 200, body = Vec<KeyView>),
        (status = 401, body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn keys(
    State(app): State<App>,
    Caller(author): Caller,
) -> Result<Json<Vec<KeyView>>, Failure> {
    let keys = service::keys(&app, author.id).await?;
    Ok(Json(keys.iter().map(KeyView::from).collect()))
}

/// Creates a key.
#[utoipa::path(
    post, path = "/api/me/keys", tag = "me", operation_id = "create_key", request_body = NewKey,
    security(("session" = [], "csrf" = []), ("signature" = [])),
    responses(
        (status = 201, body = NewKeyView),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 409, description = "There are too many", body = Problem,
            content_type = "application/problem+json"),
        (status = 422, description = "The name is not allowed", body = Problem,
            content_type = "application/problem+json"),
    )
)]
pub(super) async fn create(
    State(app): State<App>,
    Caller(author): Caller,
    Json(new): Json<NewKey>,
) -> Result<(StatusCode, Json<NewKeyView>), Failure> {
    let key = service::create_key(&app, author.id, &new.name).await?;
    let view = NewKeyView {
        key: KeyView::from(&key),
        secret: hex::encode(&key.secret),
    };
    Ok((StatusCode::CREATED, Json(view)))
}

/// Deletes a key: requests signed with it are rejected from then on.
#[utoipa::path(
    delete, path = "/api/me/keys/{id}", tag = "me", operation_id = "delete_key",
    params(("id" = Id, Path)),
    security(("session" = [], "csrf" = []), ("signature" = [])),
    responses(
        (status = 204, description = "It is gone"),
        (status = 404, body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn delete(
    State(app): State<App>,
    Caller(author): Caller,
    Path(id): Path<Id>,
) -> Result<StatusCode, Failure> {
    service::delete_key(&app, author.id, id).await?;
    Ok(StatusCode::NO_CONTENT)
}
