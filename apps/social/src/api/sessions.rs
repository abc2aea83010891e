use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use axum_extra::extract::cookie::CookieJar;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::auth::{self, Caller, Client, Viewer};
use crate::model::Author;
use crate::{App, Failure, Problem};

/// The credentials of a user who logs in.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LogIn {
    /// The user's name.
    name: String,
    /// The user's password.
    password: String,
}

/// A session that has been started.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct LoggedIn {
    /// The user who has logged in.
    user: Author,
    /// The token to send in the header field `X-CSRF-Token` of each change.
    csrf: String,
}

impl From<Viewer> for LoggedIn {
    fn from(viewer: Viewer) -> Self {
        Self {
            user: viewer.author,
            csrf: viewer.csrf,
        }
    }
}

/// Logs in: the session is in a cookie.
#[utoipa::path(
    post, path = "/api/sessions", tag = "sessions", request_body = LogIn,
    responses(
        (status = 201, body = LoggedIn,
            headers(("Set-Cookie" = String, description = "The cookie `session`"))),
        (status = 401, description = "The name or the password is wrong", body = Problem,
            content_type = "application/problem+json"),
        (status = 429, description = "Too many tries", body = Problem,
            content_type = "application/problem+json"),
    )
)]
pub(super) async fn log_in(
    State(app): State<App>,
    client: Client,
    Json(who): Json<LogIn>,
) -> Result<impl IntoResponse, Failure> {
    let begun = auth::log_in(&app, client, &who.name, &who.password).await?;
    let cookies = CookieJar::new().add(begun.cookie);
    let logged_in = Json(LoggedIn::from(begun.viewer));
    Ok((StatusCode::CREATED, cookies, logged_in))
}

/// Logs out.
#[utoipa::path(
    delete, path = "/api/sessions/current", tag = "sessions",
    security(("session" = [], "csrf" = [])),
    responses(
        (status = 204,
            description = "The session has ended, on all replicas, with its WebSockets and the \
            browsers that get notifications by it"),
        (status = 401, description = "There is no session", body = Problem,
            content_type = "application/problem+json"),
    )
)]
pub(super) async fn log_out(
    State(app): State<App>,
    _caller: Caller,
    cookies: CookieJar,
) -> Result<impl IntoResponse, Failure> {
    let removed = auth::log_out(&app, &cookies).await?;
    Ok((StatusCode::NO_CONTENT, CookieJar::new().add(removed)))
}
