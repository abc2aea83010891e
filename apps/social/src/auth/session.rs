use std::time::Duration;

use axum_extra::extract::cookie::{Cookie, CookieJar, SameSite};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Client, Viewer};
use crate::completing::complete;
use crate::feed::{Credential, Scope};
use crate::model::{Author, Id, Session, TextError, User};
use crate::service::{self, NewUser};
use crate::{App, Failure, secret};

/// The name of the session cookie.
pub const COOKIE: &str = "session";
/// The lifetime of a session.
const SESSION_FOR: Duration = Duration::from_hours(30 * 24);
/// The longest time that a session is read from the cache.
const SESSION_TTL: Duration = Duration::from_secs(10);
/// The failure of a request without a valid session.
const NOBODY: Failure = Failure::Unauthenticated("nobody is logged in");

/// A user who has just logged in.
#[derive(Debug)]
pub struct LoggedIn {
    /// The cookie for the browser to store.
    pub cookie: Cookie<'static>,
    /// The new session.
    pub viewer: Viewer,
}

/// Adds a user, as [`service::register`] does, within the limit of the client.
///
/// # Errors
/// [`Failure::TooMany`], and those of [`service::register`].
pub async fn sign_up(app: &App, client: Client, new: NewUser) -> Result<User, Failure> {
    app.limits.sign_up(client)?;
    service::register(app, new).await
}

/// Starts a session for the user with this name and this password.
///
/// # Errors
/// [`Failure::TooMany`]; [`Failure::Unauthenticated`] if the name or the password is wrong.
pub async fn log_in(
    app: &App,
    client: Client,
    name: &str,
    password: &str,
) -> Result<LoggedIn, Failure> {
    // As it is stored, so that failures are counted under one key for one name.
    let name = name.trim().to_ascii_lowercase();
    app.limits.log_in(client, &name)?;
    let user = service::authenticate(app, &name, password).await;
    if matches!(user, Err(Failure::Unauthenticated(_))) {
        app.limits.failed_log_in(&name);
    }
    let user = user?;
    start_session(app, &user).await
}

/// Checks the password of a user who is logged in already, before an action that must not be open
/// to somebody who finds the browser unattended.
///
/// Wrong passwords are counted as [failed log-ins](super::Limits::failed_log_in).
///
/// # Errors
/// [`Failure::TooMany`]; [`Failure::Invalid`] for `field` if the password is wrong;
/// [`Failure::NotFound`] if the user is gone.
pub async fn check_password(
    app: &App,
    client: Client,
    user: &Author,
    field: &'static str,
    password: &str,
) -> Result<User, Failure> {
    app.limits.log_in(client, &user.name)?;
    match service::authenticate(app, &user.name, password).await {
        Err(Failure::Unauthenticated(_)) => {
            app.limits.failed_log_in(&user.name);
            let rule = "this is not your password".to_owned();
            Err(TextError { field, rule }.into())
        }
        known => known,
    }
}

/// Starts a session without checking a password, for a user who has just signed up or given it.
///
/// # Errors
/// Fails if the storage does.
pub async fn start_session(app: &App, user: &User) -> Result<LoggedIn, Failure> {
    let token = secret::random_text();
    let session = Session {
        token_hash: secret::hash(&token).ok_or(NOBODY)?,
        user: user.id,
        csrf: secret::random_text(),
        expires_at: Timestamp::now() + SESSION_FOR,
        generation: user.generation,
    };
    app.store.insert_session(&session).await?;
    Ok(LoggedIn {
        cookie: cookie(app, token, SESSION_FOR),
        viewer: Viewer {
            author: user.author(),
            csrf: session.csrf,
            session: session.token_hash,
            expires_at: session.expires_at,
        },
    })
}

/// Ends the session of these cookies, if there is one, on all replicas, with its connections to the
/// feed and the browsers that get notifications by it. Returns the cookie that removes the
/// browser's.
///
/// # Errors
/// Fails if the storage does.
pub async fn log_out(app: &App, cookies: &CookieJar) -> Result<Cookie<'static>, Failure> {
    if let Some(viewer) = find(app, cookies).await? {
        complete(end(app.clone(), viewer)).await?;
    }
    Ok(no_cookie(app))
}

async fn end(app: App, viewer: Viewer) -> Result<(), Failure> {
    app.store.delete_session(&viewer.session).await?;
    let (user, session) = (viewer.author.id, viewer.session);
    let keys = [session_key(&session), service::reach_key(user)];
    app.cache.invalidate(&keys).await;
    app.feed
        .end_connections(user, Scope::Credential(Credential::Session(session)));
    Ok(())
}

/// Returns a cookie that removes the session's from the browser.
#[must_use]
pub fn no_cookie(app: &App) -> Cookie<'static> {
    cookie(app, String::new(), Duration::ZERO)
}

/// Returns the live session of these cookies; `None` if there is none.
pub(super) async fn find(app: &App, cookies: &CookieJar) -> Result<Option<Viewer>, Failure> {
    let Some(hash) = cookies.get(COOKIE).and_then(|it| secret::hash(it.value())) else {
        return Ok(None);
    };
    match known(app, &hash, Timestamp::now()).await {
        Ok(known) => Ok(Some(Viewer {
            author: known.author,
            csrf: known.csrf,
            session: hash,
            expires_at: known.expires_at,
        })),
        Err(Failure::Unauthenticated(_)) => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// The cached fields of a session.
#[derive(Clone, Deserialize, Serialize)]
struct CachedSession {
    author: Author,
    csrf: String,
    expires_at: Timestamp,
    generation: u64,
}

async fn known(app: &App, hash: &str, now: Timestamp) -> Result<CachedSession, Failure> {
    let key = session_key(hash);
    let load = load(app, hash, now);
    let known = app.cache.get_or_load(&key, SESSION_TTL, load).await?;
    // Cached apart, under a key of the user: invalidating that one key on all replicas ends all of
    // the user's sessions.
    let key = service::generation_key(known.author.id);
    let load = generation(app, known.author.id);
    let generation = app.cache.get_or_load(&key, SESSION_TTL, load).await?;
    if known.generation != generation || known.expires_at <= now {
        return Err(NOBODY);
    }
    Ok(known)
}

/// Loads a session. A missing one is an error, because the cache does not keep errors: invented
/// tokens would fill it.
async fn load(app: &App, hash: &str, now: Timestamp) -> Result<CachedSession, Failure> {
    let found = app.store.live_session(hash, now).await?;
    let (session, user) = found.ok_or(NOBODY)?;
    Ok(CachedSession {
        author: user.author(),
        csrf: session.csrf,
        expires_at: session.expires_at,
        generation: session.generation,
    })
}

async fn generation(app: &App, user: Id) -> Result<u64, Failure> {
    Ok(app.store.user(user).await?.ok_or(NOBODY)?.generation)
}

fn session_key(hash: &str) -> String {
    format!("session:{hash}")
}

fn cookie(app: &App, token: String, lasts: Duration) -> Cookie<'static> {
    let lasts = lasts.try_into().expect("30 days are not too long");
    Cookie::build((COOKIE, token))
        .http_only(true)
        // Lax: a link from another site, such as one in a mail, finds the user logged in.
        .same_site(SameSite::Lax)
        .path("/")
        .secure(app.settings.secure_cookies())
        .max_age(lasts)
        .build()
}
