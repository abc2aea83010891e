//! An OAuth provider, and the service to which pictures are shared with its tokens.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Form, Json, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Router, routing};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};
use social::config::ShareSettings;

use super::{Behaviour, Cell, Local, Log};

const CLIENT: &str = "greenroom";
const SECRET: &str = "a secret with: spaces";

pub(crate) struct ThirdParty {
    local: Local,
    state: Arc<Shared>,
}

#[derive(Default)]
pub(crate) struct Shared {
    /// The behaviour of the provider of tokens.
    pub(crate) provider: Cell<Behaviour>,
    /// The behaviour of the service.
    pub(crate) service: Cell<Behaviour>,
    /// Seconds that tokens are valid, as the provider says.
    pub(crate) expires_in: Cell<Option<i64>>,
    /// Tokens that were asked for.
    pub(crate) tokens: Log<String>,
    /// The requests to the service, accepted or not.
    pub(crate) shares: Log<Share>,
    valid: Cell<Vec<String>>,
}

/// A request as the service got it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Share {
    pub(crate) authorization: String,
    pub(crate) key: String,
    pub(crate) body: Value,
}

#[derive(Deserialize)]
struct TokenRequest {
    grant_type: String,
}

impl std::ops::Deref for ThirdParty {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.state
    }
}

impl ThirdParty {
    pub(crate) fn start() -> Self {
        let state = Arc::new(Shared::default());
        state.expires_in.set(Some(3_600));
        let router = Router::new()
            .route("/token", routing::post(token))
            .route("/shares", routing::post(share))
            .with_state(Arc::clone(&state));
        let local = Local::serve(router);
        Self { local, state }
    }

    pub(crate) fn settings(&self) -> ShareSettings {
        ShareSettings {
            url: self.local.url("/shares"),
            token_url: self.local.url("/token"),
            client_id: CLIENT.to_owned(),
            client_secret: SECRET.to_owned(),
            timeout: Duration::from_secs(3),
            concurrency_max: 512,
        }
    }

    /// Revokes all tokens given so far.
    pub(crate) fn revoke(&self) {
        self.valid.set(Vec::new());
    }
}

async fn token(
    State(state): State<Arc<Shared>>,
    headers: HeaderMap,
    Form(form): Form<TokenRequest>,
) -> Response {
    let behaviour = state.provider.get();
    let token = format!("token-{}", state.tokens.count() + 1);
    state.tokens.push(token.clone());
    if let Some(response) = behaviour.misbehave().await {
        return response;
    }
    let secret = SECRET.replace(' ', "+").replace(':', "%3A");
    let expected = format!("Basic {}", STANDARD.encode(format!("{CLIENT}:{secret}")));
    if header(&headers, "authorization") != expected || form.grant_type != "client_credentials" {
        return (
            StatusCode::UNAUTHORIZED,
            Json(json!({"error": "invalid_client"})),
        )
            .into_response();
    }
    state.valid.with(|valid| valid.push(token.clone()));
    let response = json!({
        "access_token": token, "token_type": "Bearer", "expires_in": state.expires_in.get(),
    });
    Json(response).into_response()
}

async fn share(
    State(state): State<Arc<Shared>>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> Response {
    let behaviour = state.service.get();
    let share = Share {
        authorization: header(&headers, "authorization"),
        key: header(&headers, "idempotency-key"),
        body,
    };
    let is_known = state.valid.with(|valid| {
        valid
            .iter()
            .any(|token| share.authorization == format!("Bearer {token}"))
    });
    let url = format!("https://third.example/{}", share.key);
    state.shares.push(share);
    if let Some(response) = behaviour.misbehave().await {
        return response;
    }
    if !is_known {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    (StatusCode::CREATED, Json(json!({"url": url}))).into_response()
}

fn header(headers: &HeaderMap, name: &str) -> String {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().to_owned()
}
