use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::people::{check_outside, reach_key};
use crate::model::{Id, PushSubscription, TextError};
use crate::{App, Failure};

/// The most browsers of a user that get notifications.
const BROWSERS_MAX: usize = 20;
/// An uncompressed point of P-256.
const POINT_BYTES: usize = 65;
/// RFC 8291, section 3.2.
const SECRET_BYTES: usize = 16;

/// Returns a user's browsers that get notifications.
///
/// # Errors
/// Those of the storage.
pub async fn browsers(app: &App, user: Id) -> Result<Vec<PushSubscription>, Failure> {
    Ok(app.store.pushes(user).await?)
}

/// Adds a browser of a user that gets notifications.
///
/// # Errors
/// [`Failure::Invalid`] for a field that is not as the Push API makes it, [`Failure::Conflict`] if
/// there is no Web Push here, or the user has too many browsers.
pub async fn add_browser(app: &App, browser: &PushSubscription) -> Result<(), Failure> {
    if app.outbox.push_key().is_none() {
        return Err(Failure::Conflict("Web Push is not set up here".to_owned()));
    }
    check_outside(
        "endpoint",
        &browser.endpoint,
        app.settings.push.allow_private,
    )?;
    check_bytes("p256dh", &browser.p256dh, POINT_BYTES)?;
    check_bytes("auth", &browser.auth, SECRET_BYTES)?;
    let others = app.store.pushes(browser.user).await?;
    let is_new = others
        .iter()
        .all(|other| other.endpoint != browser.endpoint);
    if is_new && others.len() >= BROWSERS_MAX {
        let text = format!("a user has at most {BROWSERS_MAX} browsers with notifications");
        return Err(Failure::Conflict(text));
    }
    app.store.insert_push(browser).await?;
    app.cache.invalidate(&[reach_key(browser.user)]).await;
    Ok(())
}

/// Removes a browser of a user, which gets no more notifications; an unknown one is no error.
///
/// # Errors
/// Those of the storage.
pub async fn remove_browser(app: &App, user: Id, endpoint: &str) -> Result<(), Failure> {
    let browsers = app.store.pushes(user).await?;
    if browsers
        .iter()
        .any(|browser| browser.endpoint.as_str() == endpoint)
    {
        app.store.delete_push(endpoint).await?;
        app.cache.invalidate(&[reach_key(user)]).await;
    }
    Ok(())
}

fn check_bytes(field: &'static str, text: &str, bytes: usize) -> Result<(), TextError> {
    match URL_SAFE_NO_PAD.decode(text) {
        Ok(decoded) if decoded.len() == bytes => Ok(()),
        _ => {
            let rule = format!("{bytes} bytes in base64url are needed, without padding");
            Err(TextError { field, rule })
        }
    }
}
