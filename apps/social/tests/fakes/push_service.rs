//! A push service and the browsers that it serves. It checks the sender, and decrypts messages as
//! browsers would.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Router, routing};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;
use social::model::{Id, PushSubscription};
use url::Url;
use web_push_native::jwt_simple::algorithms::{
    ECDSAP256PublicKeyLike, ES256KeyPair, ES256PublicKey,
};
use web_push_native::jwt_simple::claims::NoCustomClaims;
use web_push_native::jwt_simple::common::VerificationOptions;
use web_push_native::p256::SecretKey;
use web_push_native::p256::elliptic_curve::sec1::ToEncodedPoint;
use web_push_native::{Auth, decrypt};

use super::{Behaviour, Cell, Local, Log};

pub(crate) struct PushService {
    local: Local,
    state: Arc<Shared>,
}

#[derive(Default)]
pub(crate) struct Shared {
    /// The behaviour towards each browser; good by default.
    pub(crate) behaviours: Cell<HashMap<String, Behaviour>>,
    /// The messages to browsers, accepted or not.
    pub(crate) messages: Log<Message>,
    browsers: Cell<HashMap<String, Browser>>,
    origin: Cell<String>,
}

/// A message as a browser shows it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Message {
    /// The browser.
    pub(crate) to: String,
    /// The text that was encrypted.
    pub(crate) text: Value,
    /// Seconds for which the message is to be kept.
    pub(crate) ttl: u32,
    /// The key that it was signed with, base64url.
    pub(crate) signed_with: String,
}

#[derive(Clone)]
struct Browser {
    secret: SecretKey,
    auth: [u8; 16],
}

impl std::ops::Deref for PushService {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.state
    }
}

impl PushService {
    pub(crate) fn start() -> Self {
        let state = Arc::new(Shared::default());
        let router = Router::new()
            .route("/push/{browser}", routing::post(push))
            .with_state(Arc::clone(&state));
        let local = Local::serve(router);
        state
            .origin
            .set(local.url("").origin().ascii_serialization());
        Self { local, state }
    }

    /// Subscribes a new browser of this name for a user.
    pub(crate) fn subscribe(&self, name: &str, user: Id) -> PushSubscription {
        let secret =
            SecretKey::from_slice(&ES256KeyPair::generate().to_bytes()).expect("a key is a key");
        let auth: [u8; 16] = rand::random();
        let subscription = PushSubscription {
            endpoint: self.endpoint(name),
            user,
            p256dh: URL_SAFE_NO_PAD.encode(secret.public_key().to_encoded_point(false)),
            auth: URL_SAFE_NO_PAD.encode(auth),
            session: None,
        };
        let browser = Browser { secret, auth };
        self.browsers
            .with(|browsers| browsers.insert(name.to_owned(), browser));
        subscription
    }

    pub(crate) fn endpoint(&self, name: &str) -> Url {
        self.local.url(&format!("/push/{name}"))
    }

    pub(crate) fn set_behaviour(&self, name: &str, behaviour: Behaviour) {
        self.behaviours
            .with(|behaviours| behaviours.insert(name.to_owned(), behaviour));
    }
}

async fn push(
    State(state): State<Arc<Shared>>,
    Path(to): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let behaviour = state
        .behaviours
        .with(|behaviours| behaviours.get(&to).cloned())
        .unwrap_or_default();
    match receive(&state, &to, &headers, &body) {
        Ok(message) => state.messages.push(message),
        Err(reason) => return (StatusCode::BAD_REQUEST, reason).into_response(),
    }
    let response = behaviour.misbehave().await;
    response.unwrap_or_else(|| StatusCode::CREATED.into_response())
}

fn receive(state: &Shared, to: &str, headers: &HeaderMap, body: &[u8]) -> Result<Message, String> {
    let browser = state.browsers.with(|browsers| browsers.get(to).cloned());
    let browser = browser.ok_or("there is no such browser")?;
    let signed_with = verify(header(headers, "authorization")?, state.origin.get())?;
    if header(headers, "content-encoding")? != "aes128gcm" {
        return Err("it is not encrypted as it must be".to_owned());
    }
    let auth = Auth::from_slice(&browser.auth);
    let text = decrypt(body.to_vec(), &browser.secret, auth).map_err(|error| error.to_string())?;
    Ok(Message {
        to: to.to_owned(),
        text: serde_json::from_slice(&text).map_err(|error| error.to_string())?,
        ttl: header(headers, "ttl")?
            .parse()
            .map_err(|_| "TTL is no number")?,
        signed_with,
    })
}

/// Returns the key of a VAPID signature (RFC 8292) that was made for this service.
fn verify(authorization: &str, origin: String) -> Result<String, String> {
    let fields = authorization
        .strip_prefix("vapid t=")
        .ok_or("it is not signed")?;
    let (token, key) = fields.split_once(", k=").ok_or("there is no key")?;
    let bytes = URL_SAFE_NO_PAD
        .decode(key)
        .map_err(|error| error.to_string())?;
    let public_key = ES256PublicKey::from_bytes(&bytes).map_err(|error| error.to_string())?;
    let options = VerificationOptions {
        allowed_audiences: Some(HashSet::from([origin])),
        ..VerificationOptions::default()
    };
    let claims = public_key.verify_token::<NoCustomClaims>(token, Some(options));
    let claims = claims.map_err(|error| error.to_string())?;
    let subject = claims.subject.unwrap_or_default();
    if !subject.starts_with("mailto:") {
        return Err(format!("`{subject}` cannot be written to"));
    }
    Ok(key.to_owned())
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Result<&'a str, String> {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.ok_or_else(|| format!("there is no header {name}"))
}
