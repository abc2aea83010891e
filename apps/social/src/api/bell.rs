use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::auth::Caller;
use crate::service::{self, Bell};
use crate::{App, Failure, Problem};

/// The position up to which the bell has been seen.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Seen {
    /// The `seq` of the bell, or of its last entry, that was shown.
    seen: u64,
}

/// Returns the likes and comments of others on the caller's pictures.
#[utoipa::path(
    get, path = "/api/me/bell", tag = "me", security(("session" = []), ("signature" = [])),
    responses(
        (status = 200, body = Bell),
        (status = 401, body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn bell(
    State(app): State<App>,
    Caller(author): Caller,
) -> Result<Json<Bell>, Failure> {
    Ok(Json(service::bell(&app, author.id).await?))
}

/// Marks the bell as seen. A smaller number than before changes nothing.
#[utoipa::path(
    put, path = "/api/me/bell", tag = "me", operation_id = "see_bell", request_body = Seen,
    security(("session" = [], "csrf" = []), ("signature" = [])),
    responses(
        (status = 200, body = Bell),
        (status = 401, body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn see(
    State(app): State<App>,
    Caller(author): Caller,
    Json(Seen { seen }): Json<Seen>,
) -> Result<Json<Bell>, Failure> {
    Ok(Json(service::see_bell(&app, author.id, seen).await?))
}
