use axum::extract::FromRequestParts;
use axum_extra::extract::cookie::CookieJar;
use http::request::Parts;
use jiff::Timestamp;

use super::mask::is_token;
use super::session;
use super::signature::Signer;
use crate::feed::{Credential, Watcher};
use crate::model::{Author, Id};
use crate::{App, Failure};

/// The header field in which scripts send the session's CSRF token with each change.
pub const CSRF_HEADER: &str = "x-csrf-token";

const NOBODY: Failure = Failure::Unauthenticated("log in first");
const WRONG_CSRF: Failure =
    Failure::Forbidden("the CSRF token is missing or not that of this session; reload the page");

/// The user of a session: an extractor that fails with [`Failure::Unauthenticated`] without one.
///
/// Requests with unsafe methods are counted as a [change](super::Limits::change); their handlers
/// must call [`check_csrf`].
#[derive(Clone, Debug)]
pub struct Viewer {
    /// The user.
    pub author: Author,
    /// The CSRF token, which forms send back in a hidden field and scripts in the header field
    /// [`CSRF_HEADER`]; in pages it is [masked](super::mask_csrf).
    pub csrf: String,
    /// The hash of the session's token.
    pub session: String,
    /// The end of the session, unless it is ended earlier.
    pub expires_at: Timestamp,
}

impl FromRequestParts<App> for Viewer {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Failure> {
        let viewer = session_of(parts, app).await?.ok_or(NOBODY)?;
        count_change(parts, app, viewer.author.id)?;
        Ok(viewer)
    }
}

/// The user of a session, if there is one: an extractor for what everybody may see.
#[derive(Clone, Debug)]
pub struct MaybeViewer(pub Option<Viewer>);

impl FromRequestParts<App> for MaybeViewer {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Failure> {
        session_of(parts, app).await.map(Self)
    }
}

/// Checks the token that a form has sent back against [`Viewer::csrf`].
///
/// # Errors
/// [`Failure::Forbidden`] if it is not the session's.
pub fn check_csrf(viewer: &Viewer, sent: &str) -> Result<(), Failure> {
    if is_token(sent, &viewer.csrf) {
        Ok(())
    } else {
        Err(WRONG_CSRF)
    }
}

/// The user who calls the API, by a signature or by a session: an extractor that fails with
/// [`Failure::Unauthenticated`] if there is neither.
///
/// Requests with unsafe methods are counted as a [change](super::Limits::change) and, by a session,
/// need the header field [`CSRF_HEADER`].
#[derive(Clone, Debug)]
pub struct Caller(pub Author);

impl FromRequestParts<App> for Caller {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Failure> {
        let MaybeCaller(caller) = MaybeCaller::from_request_parts(parts, app).await?;
        let caller = caller.ok_or(NOBODY)?;
        count_change(parts, app, caller.id)?;
        Ok(Self(caller))
    }
}

/// The user who calls the API, if known: an extractor for what everybody may read.
#[derive(Clone, Debug)]
pub struct MaybeCaller(pub Option<Author>);

impl FromRequestParts<App> for MaybeCaller {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Failure> {
        if let Some(signer) = parts.extensions.get::<Signer>() {
            return Ok(Self(Some(signer.author.clone())));
        }
        let Some(viewer) = session_of(parts, app).await? else {
            return Ok(Self(None));
        };
        if !parts.method.is_safe() {
            // Only browsers attach credentials unasked, so signed requests need no token.
            let sent = parts.headers.get(CSRF_HEADER);
            let sent = sent.and_then(|sent| sent.to_str().ok());
            check_csrf(&viewer, sent.unwrap_or_default())?;
        }
        Ok(Self(Some(viewer.author)))
    }
}

impl MaybeCaller {
    /// Returns the user's identifier.
    #[must_use]
    pub fn id(&self) -> Option<Id> {
        self.0.as_ref().map(|author| author.id)
    }
}

/// The user who connects to the feed, by a signature or by a session, if known: an extractor.
#[derive(Clone, Debug)]
pub struct MaybeWatcher(pub Option<Watcher>);

impl FromRequestParts<App> for MaybeWatcher {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Failure> {
        if let Some(signer) = parts.extensions.get::<Signer>() {
            return Ok(Self(Some(Watcher {
                user: signer.author.id,
                credential: Credential::Key(signer.key),
                expires_at: None,
            })));
        }
        let viewer = session_of(parts, app).await?;
        Ok(Self(viewer.map(|viewer| Watcher {
            user: viewer.author.id,
            credential: Credential::Session(viewer.session),
            expires_at: Some(viewer.expires_at),
        })))
    }
}

async fn session_of(parts: &Parts, app: &App) -> Result<Option<Viewer>, Failure> {
    session::find(app, &CookieJar::from_headers(&parts.headers)).await
}

fn count_change(parts: &Parts, app: &App, user: Id) -> Result<(), Failure> {
    if parts.method.is_safe() {
        return Ok(());
    }
    app.limits.change(user)
}
