use std::fmt::Display;

use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use url::Url;
use utoipa::ToSchema;

use crate::auth::Caller;
use crate::model::{Id, TextError, User, UserChange};
use crate::service;
use crate::{App, Failure, Problem};

/// The caller, as they see themself.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Me {
    /// The identifier, which never changes.
    id: Id,
    /// The unique name, which never changes.
    name: String,
    /// The name that others read.
    display: String,
    /// The user's text about themself.
    about: String,
    /// The address for mails; empty until the first one is confirmed.
    email: String,
    /// The address that waits for its confirmation, by a link that was mailed to it.
    unconfirmed_email: Option<String>,
    /// True if a digest of the day is mailed.
    digest: bool,
    /// The webhook that notifications are posted to.
    #[schema(value_type = Option<String>, format = "uri")]
    webhook: Option<Url>,
    /// The time of the sign-up.
    #[schema(value_type = String, format = DateTime)]
    joined_at: Timestamp,
}

impl From<User> for Me {
    fn from(user: User) -> Self {
        Self {
            unconfirmed_email: user.unconfirmed_email().map(str::to_owned),
            id: user.id,
            name: user.name,
            display: user.display,
            about: user.about,
            email: user.email,
            digest: user.digest,
            webhook: user.webhook,
            joined_at: user.joined_at,
        }
    }
}

/// The fields of a user to change; those that are not given stay.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MeChange {
    /// 1 to 60 characters.
    display: Option<String>,
    /// Up to 500 characters.
    about: Option<String>,
    /// True if a digest of the day is mailed.
    digest: Option<bool>,
    /// An address that begins with `https://`; null for none.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>, format = "uri")]
    webhook: Option<Value>,
}

/// Tells null, which removes the webhook, from an absent field, which leaves it.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl TryFrom<MeChange> for UserChange {
    type Error = TextError;

    fn try_from(change: MeChange) -> Result<Self, TextError> {
        let webhook = change.webhook.map(webhook).transpose()?;
        Ok(Self {
            display: change.display,
            about: change.about,
            digest: change.digest,
            webhook,
            ..Self::default()
        })
    }
}

fn webhook(value: Value) -> Result<Option<Url>, TextError> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) => parse_webhook(&text).map(Some),
        other => Err(wrong_webhook(&format!("not {other}"))),
    }
}

/// Parses the address of a webhook as a user wrote it.
///
/// # Errors
/// Fails with the field `webhook` if it is not an address.
pub(crate) fn parse_webhook(text: &str) -> Result<Url, TextError> {
    Url::parse(text).map_err(|error| wrong_webhook(&error))
}

fn wrong_webhook(error: &dyn Display) -> TextError {
    TextError {
        field: "webhook",
        rule: format!("an address such as https://example.org/hook, or none, is needed ({error})"),
    }
}

/// Returns the caller.
#[utoipa::path(
    get, path = "/api/me", tag = "me", security(("session" = []), ("signature" = [])),
    responses(
        (status = 200, body = Me),
        (status = 401, body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn me(
    State(app): State<App>,
    Caller(author): Caller,
) -> Result<Json<Me>, Failure> {
    Ok(Json(service::user(&app, &author.name).await?.into()))
}

/// Changes the caller.
#[utoipa::path(
    patch, path = "/api/me", tag = "me", operation_id = "change_me", request_body = MeChange,
    security(("session" = [], "csrf" = []), ("signature" = [])),
    responses(
        (status = 200, body = Me),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 422, description = "A field is not allowed", body = Problem,
            content_type = "application/problem+json"),
    )
)]
pub(super) async fn change(
    State(app): State<App>,
    Caller(author): Caller,
    Json(change): Json<MeChange>,
) -> Result<Json<Me>, Failure> {
    let changed = service::change_user(&app, author.id, change.try_into()?).await?;
    Ok(Json(changed.into()))
}
