use axum::Json;
use axum::extract::State;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use url::Url;
use utoipa::ToSchema;

use crate::auth::{Caller, MaybeViewer};
use crate::model::{PushSubscription, TextError};
use crate::service;
use crate::{App, Failure, Problem};

/// The public key that a browser needs to subscribe.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct PushKey {
    /// The `applicationServerKey`, base64url; null if there is no Web Push here.
    key: Option<String>,
}

/// A browser's `PushSubscription`, as its `toJSON()` gives it.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Subscription {
    /// The address at which the push service takes messages for this browser.
    #[schema(format = "uri")]
    endpoint: String,
    /// Ignored.
    #[serde(default, rename = "expirationTime")]
    #[expect(dead_code, reason = "browsers send it, so it is no unknown field")]
    expiration_time: Option<f64>,
    /// The keys that messages are encrypted with.
    keys: SubscriptionKeys,
}

/// The keys that messages for a browser are encrypted with.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SubscriptionKeys {
    /// The browser's public key, base64url.
    p256dh: String,
    /// The shared secret, base64url.
    auth: String,
}

/// A browser that wants no more messages. Other fields of its `PushSubscription` may be present.
#[derive(Deserialize, ToSchema)]
pub(super) struct Unsubscription {
    /// The address at which the push service takes messages for this browser.
    #[schema(format = "uri")]
    endpoint: String,
}

/// Returns the key for browsers that subscribe to notifications.
#[utoipa::path(
    get, path = "/api/push-key", tag = "push", responses((status = 200, body = PushKey))
)]
pub(super) async fn push_key(State(app): State<App>) -> Json<PushKey> {
    Json(PushKey {
        key: app.outbox.push_key().map(str::to_owned),
    })
}

/// Returns the endpoints of the caller's browsers at their push services.
#[utoipa::path(
    get, path = "/api/me/push", tag = "push", operation_id = "browsers",
    security(("session" = []), ("signature" = [])),
    responses(
        (status = 200, body = Vec<String>),
        (status = 401, body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn list(
    State(app): State<App>,
    Caller(author): Caller,
) -> Result<Json<Vec<String>>, Failure> {
    let browsers = service::browsers(&app, author.id).await?;
    let endpoints = browsers.into_iter().map(|browser| browser.endpoint.into());
    Ok(Json(endpoints.collect()))
}

/// Sends notifications to this browser, until the session ends that the request is made by.
#[utoipa::path(
    post, path = "/api/me/push", tag = "push", operation_id = "add_browser",
    request_body = Subscription,
    security(("session" = [], "csrf" = []), ("signature" = [])),
    responses(
        (status = 204, description = "It gets notifications"),
        (status = 409, description = "There is no Web Push here, or there are too many browsers",
            body = Problem, content_type = "application/problem+json"),
        (status = 422, description = "A field is not as the Push API makes it", body = Problem,
            content_type = "application/problem+json"),
    )
)]
pub(super) async fn add(
    State(app): State<App>,
    Caller(author): Caller,
    MaybeViewer(viewer): MaybeViewer,
    Json(subscription): Json<Subscription>,
) -> Result<StatusCode, Failure> {
    let unpadded = |text: &str| text.trim_end_matches('=').to_owned();
    let browser = PushSubscription {
        endpoint: endpoint(&subscription.endpoint)?,
        user: author.id,
        p256dh: unpadded(&subscription.keys.p256dh),
        auth: unpadded(&subscription.keys.auth),
        session: viewer.map(|viewer| viewer.session),
    };
    service::add_browser(&app, &browser).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Stops notifications to this browser.
#[utoipa::path(
    delete, path = "/api/me/push", tag = "push", operation_id = "remove_browser",
    request_body = Unsubscription,
    security(("session" = [], "csrf" = []), ("signature" = [])),
    responses(
        (status = 204, description = "It gets no notifications"),
        (status = 401, body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn remove(
    State(app): State<App>,
    Caller(author): Caller,
    Json(browser): Json<Unsubscription>,
) -> Result<StatusCode, Failure> {
    let endpoint = endpoint(&browser.endpoint)?;
    service::remove_browser(&app, author.id, endpoint.as_str()).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn endpoint(text: &str) -> Result<Url, TextError> {
    Url::parse(text).map_err(|error| TextError {
        field: "endpoint",
        rule: format!("the address of a push service is needed ({error})"),
    })
}
