use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use axum_extra::extract::cookie::CookieJar;
use http::StatusCode;
use serde::Deserialize;
use utoipa::ToSchema;

use super::sessions::LoggedIn;
use crate::auth::{self, Caller, Client};
use crate::{App, Failure, Problem, service};

/// Another password that is wanted.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewPassword {
    /// The present one.
    old: String,
    /// 10 to 200 characters.
    new: String,
}

/// Change the password. All sessions end, with their connections to the feed and the browsers that get notifications; a new one begins.
#[utoipa::path(
    put, path = "/api/me/password", tag = "me", operation_id = "change_password", request_body = NewPassword,
    security(("session" = [], "csrf" = []), ("signature" = [])),
    responses(
        (status = 200, body = LoggedIn, headers(("Set-Cookie" = String, description = "The cookie `session`"))),
        (status = 422, description = "The old one is wrong, or the new one not allowed", body = Problem, content_type = "application/problem+json"),
        (status = 429, description = "Too many tries", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn change_password(
    State(app): State<App>,
    client: Client,
    Caller(author): Caller,
    Json(wanted): Json<NewPassword>,
) -> Result<impl IntoResponse, Failure> {
    auth::check_password(&app, client, &author, "old", &wanted.old).await?;
    let user = service::set_password(&app, author.id, "new", &wanted.new).await?;
    let begun = auth::start_session(&app, &user).await?;
    let cookies = CookieJar::new().add(begun.cookie);
    Ok((cookies, Json(LoggedIn::from(begun.viewer))))
}

/// Another address that is wanted.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewEmail {
    /// Where mails are to go.
    email: String,
    /// The user's password.
    password: String,
}

/// Ask for another address for mails. It is the user's when the link was followed that is mailed to it; the present one is told of that.
#[utoipa::path(
    put, path = "/api/me/email", tag = "me", operation_id = "change_email", request_body = NewEmail,
    security(("session" = [], "csrf" = []), ("signature" = [])),
    responses(
        (status = 202, description = "A mail is on its way, unless one was asked for in the last five minutes"),
        (status = 422, description = "The password is wrong, or the address not allowed", body = Problem, content_type = "application/problem+json"),
        (status = 429, description = "Too many tries, or mails", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn change_email(
    State(app): State<App>,
    client: Client,
    Caller(author): Caller,
    Json(wanted): Json<NewEmail>,
) -> Result<StatusCode, Failure> {
    let password = &wanted.password;
    let user = auth::check_password(&app, client, &author, "password", password).await?;
    app.limits.mail(client)?;
    service::ask_for_email(&app, &user, &wanted.email).await?;
    Ok(StatusCode::ACCEPTED)
}

/// What a link in a mail says.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Confirmation {
    /// What the link has as `token`.
    token: String,
}

/// Confirm an address by the token that was mailed to it.
#[utoipa::path(
    post, path = "/api/email/confirm", tag = "sessions", operation_id = "confirm_email", request_body = Confirmation,
    responses(
        (status = 204, description = "Mails go there now"),
        (status = 422, description = "The token was used before, or is too old", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn confirm_email(
    State(app): State<App>,
    Json(link): Json<Confirmation>,
) -> Result<StatusCode, Failure> {
    service::confirm_email(&app, &link.token).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The address of somebody who has forgotten their password.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Forgotten {
    /// With which they have signed up.
    email: String,
}

/// Ask for a mail with a link to set another password. What is answered does not tell whether anybody has the address.
#[utoipa::path(
    post, path = "/api/password/forgotten", tag = "sessions", operation_id = "forget_password", request_body = Forgotten,
    responses(
        (status = 202, description = "If somebody has this address, a mail is on its way, unless one was asked for in the last five minutes"),
        (status = 422, description = "It is no address", body = Problem, content_type = "application/problem+json"),
        (status = 429, description = "Too many mails", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn forgotten(
    State(app): State<App>,
    client: Client,
    Json(who): Json<Forgotten>,
) -> Result<StatusCode, Failure> {
    app.limits.mail(client)?;
    service::ask_for_reset(&app, &who.email).await?;
    Ok(StatusCode::ACCEPTED)
}

/// Another password, by a link.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Reset {
    /// What the link has as `token`.
    token: String,
    /// 10 to 200 characters.
    password: String,
}

/// Set another password by the token of a mail. All sessions end.
#[utoipa::path(
    post, path = "/api/password/reset", tag = "sessions", operation_id = "reset_password", request_body = Reset,
    responses(
        (status = 204, description = "It is set; log in with it"),
        (status = 422, description = "The token was used before or is too old, or the password not allowed", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn reset(
    State(app): State<App>,
    Json(wanted): Json<Reset>,
) -> Result<StatusCode, Failure> {
    service::reset_password(&app, &wanted.token, &wanted.password).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Log out everywhere: all sessions of the user who asks end, on all replicas, with their connections to the feed and the browsers that get
/// notifications. Keys stay.
#[utoipa::path(
    delete, path = "/api/sessions", tag = "sessions", operation_id = "log_out_everywhere",
    security(("session" = [], "csrf" = []), ("signature" = [])),
    responses(
        (status = 204, description = "They have ended"),
        (status = 401, body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn log_out_everywhere(
    State(app): State<App>,
    Caller(author): Caller,
) -> Result<impl IntoResponse, Failure> {
    service::end_sessions(&app, author.id).await?;
    let removed = CookieJar::new().add(auth::no_cookie(&app));
    Ok((StatusCode::NO_CONTENT, removed))
}

/// Somebody who wants to leave for good.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Goodbye {
    /// The user's password.
    password: String,
}

/// Delete the user who asks, with all that they have made. Pictures are gone at once; comments and likes soon, and then the name is free.
#[utoipa::path(
    delete, path = "/api/me", tag = "me", operation_id = "delete_me", request_body = Goodbye,
    security(("session" = [], "csrf" = []), ("signature" = [])),
    responses(
        (status = 204, description = "They are gone"),
        (status = 422, description = "The password is wrong", body = Problem, content_type = "application/problem+json"),
        (status = 429, description = "Too many tries", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn delete_me(
    State(app): State<App>,
    client: Client,
    Caller(author): Caller,
    Json(goodbye): Json<Goodbye>,
) -> Result<impl IntoResponse, Failure> {
    let password = &goodbye.password;
    auth::check_password(&app, client, &author, "password", password).await?;
    service::delete_account(&app, &author).await?;
    let removed = CookieJar::new().add(auth::no_cookie(&app));
    Ok((StatusCode::NO_CONTENT, removed))
}
