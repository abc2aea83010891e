use std::time::Duration;

use axum_extra::extract::cookie::{Cookie, CookieJar, SameSite};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{Client, Viewer};
use crate::model::{Author, Session, User};
use crate::service::{self, NewUser};
use crate::{App, Failure};

/// The cookie's name.
pub const COOKIE: &str = "session";
/// How long a log-in lasts.
const SESSION_FOR: Duration = Duration::from_hours(30 * 24);
/// How long a session is read from the cache, at most.
const SESSION_TTL: Duration = Duration::from_secs(10);
/// 32 bytes in base64url.
const TOKEN_LENGTH: usize = 43;

/// Somebody who has just logged in.
#[derive(Debug)]
pub struct LoggedIn {
    /// What the browser is to keep.
    pub cookie: Cookie<'static>,
    /// Who it is.
    pub viewer: Viewer,
}

/// Adds a user, as [`service::register`] does, if the client has not added too many.
///
/// # Errors
/// [`Failure::TooMany`], and those of [`service::register`].
pub async fn sign_up(app: &App, client: Client, new: NewUser) -> Result<User, Failure> {
    app.limits.sign_up(client)?;
    service::register(app, new).await
}

/// Begins a session for who has this name and this password.
///
/// # Errors
/// [`Failure::TooMany`], [`Failure::Unauthenticated`].
pub async fn log_in(
    app: &App,
    client: Client,
    name: &str,
    password: &str,
) -> Result<LoggedIn, Failure> {
    let name = name.trim().to_ascii_lowercase();
    app.limits.log_in(client, &name)?;
    let user = service::authenticate(app, &name, password).await;
    if matches!(user, Err(Failure::Unauthenticated(_))) {
        app.limits.failed_log_in(&name);
    }
    let user = user?;
    start_session(app, &user).await
}

/// Begins a session without asking for a password: for who has just signed up.
///
/// # Errors
/// Those of the storage.
pub async fn start_session(app: &App, user: &User) -> Result<LoggedIn, Failure> {
    let token = random_text();
    let session = Session {
        token_hash: hash(&token),
        user: user.id,
        csrf: random_text(),
        expires_at: Timestamp::now() + SESSION_FOR,
    };
    app.store.insert_session(&session).await?;
    Ok(LoggedIn {
        cookie: cookie(app, token, SESSION_FOR),
        viewer: Viewer {
            author: user.author(),
            csrf: session.csrf,
        },
    })
}

/// Ends the session of these cookies, if there is one, on all replicas; gives the cookie that removes the browser's.
///
/// # Errors
/// Those of the storage.
pub async fn log_out(app: &App, cookies: &CookieJar) -> Result<Cookie<'static>, Failure> {
    if let Some(hash) = token_hash(cookies) {
        app.store.delete_session(&hash).await?;
        app.cache.invalidate(&[cache_key(&hash)]).await;
    }
    Ok(cookie(app, String::new(), Duration::ZERO))
}

/// Who has logged in with the token of these cookies; `None` if nobody has, or it has expired.
pub(super) async fn find(app: &App, cookies: &CookieJar) -> Result<Option<Viewer>, Failure> {
    let Some(hash) = token_hash(cookies) else {
        return Ok(None);
    };
    let now = Timestamp::now();
    let key = cache_key(&hash);
    let known = app
        .cache
        .get_or_load(&key, SESSION_TTL, load(app, &hash, now));
    match known.await {
        Ok(known) if known.expires_at > now => Ok(Some(Viewer {
            author: known.author,
            csrf: known.csrf,
        })),
        Ok(_) | Err(Failure::Unauthenticated(_)) => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// What is kept of a session in the cache.
#[derive(Clone, Deserialize, Serialize)]
struct Known {
    author: Author,
    csrf: String,
    expires_at: Timestamp,
}

async fn load(app: &App, hash: &str, now: Timestamp) -> Result<Known, Failure> {
    // An error, because the cache does not keep errors: invented tokens would fill it.
    const NOBODY: Failure = Failure::Unauthenticated("nobody is logged in");
    let session = app.store.session(hash, now).await?.ok_or(NOBODY)?;
    let user = app.store.user(session.user).await?.ok_or(NOBODY)?;
    Ok(Known {
        author: user.author(),
        csrf: session.csrf,
        expires_at: session.expires_at,
    })
}

fn token_hash(cookies: &CookieJar) -> Option<String> {
    let token = cookies.get(COOKIE)?.value();
    (token.len() == TOKEN_LENGTH).then(|| hash(token))
}

fn hash(token: &str) -> String {
    hex::encode(Sha256::digest(token))
}

fn cache_key(hash: &str) -> String {
    format!("session:{hash}")
}

fn random_text() -> String {
    URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>())
}

fn cookie(app: &App, token: String, lasts: Duration) -> Cookie<'static> {
    let lasts = lasts.try_into().expect("30 days are not too long");
    Cookie::build((COOKIE, token))
        .http_only(true)
        .same_site(SameSite::Lax)
        .path("/")
        .secure(app.settings.secure_cookies())
        .max_age(lasts)
        .build()
}
