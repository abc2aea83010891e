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

/// A change of the password.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewPassword {
    /// The present password.
    old: String,
    /// The new password: 10 to 200 characters.
    new: String,
}

/// Changes the password. All sessions end, with their connections to the feed and the browsers that
/// get notifications; a new one begins.
#[utoipa::path(
    put, path = "/api/me/password", tag = "me", operation_id = "change_password",
    request_body = NewPassword,
    security(("session" = [], "csrf" = []), ("signature" = [])),
    responses(
        (status = 200, body = LoggedIn,
            headers(("Set-Cookie" = String, description = "The cookie `session`"))),
        (status = 422, description = "The old one is wrong, or the new one not allowed",
            body = Problem, content_type = "application/problem+json"),
        (status = 429, description = "Too many tries", body = Problem,
            content_type = "application/problem+json"),
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

/// A change of the address for mails.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewEmail {
    /// The new address.
    email: String,
    /// The user's password.
    password: String,
}

/// Asks for another address for mails. It replaces the present one, which is notified, once the
/// link is followed that is mailed to it.
#[utoipa::path(
    put, path = "/api/me/email", tag = "me", operation_id = "change_email", request_body = NewEmail,
    security(("session" = [], "csrf" = []), ("signature" = [])),
    responses(
        (status = 202,
            description = "A mail is on its way, unless one was asked for in the last five \
            minutes"),
        (status = 422, description = "The password is wrong, or the address not allowed",
            body = Problem, content_type = "application/problem+json"),
        (status = 429, description = "Too many tries, or mails", body = Problem,
            content_type = "application/problem+json"),
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

/// The token of a link in a mail.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Confirmation {
    /// The link's parameter `token`.
    token: String,
}

/// Confirms an address by the token that was mailed to it.
#[utoipa::path(
    post, path = "/api/email/confirm", tag = "sessions", operation_id = "confirm_email",
    request_body = Confirmation,
    responses(
        (status = 204, description = "Mails go there now"),
        (status = 422, description = "The token was used before, or is too old", body = Problem,
            content_type = "application/problem+json"),
    )
)]
pub(super) async fn confirm_email(
    State(app): State<App>,
    Json(link): Json<Confirmation>,
) -> Result<StatusCode, Failure> {
    service::confirm_email(&app, &link.token).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The address of a user who has forgotten their password.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Forgotten {
    /// The address that they signed up with.
    email: String,
}

/// Asks for a mail with a link to set another password. The response does not tell if anybody has
/// the address.
#[utoipa::path(
    post, path = "/api/password/forgotten", tag = "sessions", operation_id = "forget_password",
    request_body = Forgotten,
    responses(
        (status = 202,
            description = "If somebody has this address, a mail is on its way, unless one was \
            asked for in the last five minutes"),
        (status = 422, description = "It is not an address", body = Problem,
            content_type = "application/problem+json"),
        (status = 429, description = "Too many mails", body = Problem,
            content_type = "application/problem+json"),
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

/// A new password, set by a link.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Reset {
    /// The link's parameter `token`.
    token: String,
    /// The new password: 10 to 200 characters.
    password: String,
}

/// Sets another password by the token of a mail. All sessions end.
#[utoipa::path(
    post, path = "/api/password/reset", tag = "sessions", operation_id = "reset_password",
    request_body = Reset,
    responses(
        (status = 204, description = "It is set; log in with it"),
        (status = 422,
            description = "The token was used before or is too old, or the password not allowed",
            body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn reset(
    State(app): State<App>,
    Json(wanted): Json<Reset>,
) -> Result<StatusCode, Failure> {
    service::reset_password(&app, &wanted.token, &wanted.password).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Logs out everywhere: all sessions of the caller end, on all replicas, with their connections to
/// the feed and the browsers that get notifications. Keys stay.
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

/// The confirmation of a user who leaves for good.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Goodbye {
    /// The user's password.
    password: String,
}

/// Deletes the caller, with all that they have made. Pictures are gone at once; comments and likes
/// soon, and then the name is free.
#[utoipa::path(
    delete, path = "/api/me", tag = "me", operation_id = "delete_me", request_body = Goodbye,
    security(("session" = [], "csrf" = []), ("signature" = [])),
    responses(
        (status = 204, description = "They are gone"),
        (status = 422, description = "The password is wrong", body = Problem,
            content_type = "application/problem+json"),
        (status = 429, description = "Too many tries", body = Problem,
            content_type = "application/problem+json"),
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
