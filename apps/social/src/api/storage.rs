use axum::Json;
use axum::extract::State;

use crate::auth::Caller;
use crate::service::{self, Storage};
use crate::{App, Failure, Problem};

/// Returns the storage that the caller's pictures take, and its limits.
#[utoipa::path(
    get, path = "/api/me/storage", tag = "me", security(("session" = []), ("signature" = [])),
    responses(
        (status = 200, body = Storage),
        (status = 401, body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn storage(
    State(app): State<App>,
    Caller(author): Caller,
) -> Result<Json<Storage>, Failure> {
    Ok(Json(service::storage(&app, author.id).await?))
}
