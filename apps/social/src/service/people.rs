use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use url::Url;
use utoipa::ToSchema;

use super::{now, wake};
use crate::model::{
    Effects, Id, NewTask, TaskKind, TextError, User, UserChange, check_email, check_name,
    check_password, check_text,
};
use crate::{App, Failure};

/// Longest age of a user in the cache.
const USER_TTL: Duration = Duration::from_secs(10);

/// Longest webhook address, in bytes.
const ADDRESS_BYTES_MAX: usize = 2_000;

/// The form of a user who signs up.
#[derive(Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewUser {
    /// Unique: 3 to 30 letters `a` to `z`, digits, `_` or `-`, beginning with a letter.
    pub name: String,
    /// Displayed name, 1 to 60 characters; the name, if it is not given.
    #[serde(default)]
    pub display: Option<String>,
    /// Address for mails.
    pub email: String,
    /// Password, 10 to 200 characters.
    pub password: String,
}

/// Adds a user, whose welcome mail is in the outbox from then on: the only one that goes to their
/// address before they confirm it, by the link in it. (The thesis' program 4.1; here
/// the storage decides which of two users gets a name.)
///
/// # Errors
/// [`Failure::Invalid`] for a field that is not allowed, [`Failure::Conflict`] if the name is
/// taken.
pub async fn register(app: &App, new: NewUser) -> Result<User, Failure> {
    let user = checked(&new)?;
    let password = app.passwords.hash(&new.password).await?;
    let user = User { password, ..user };
    let effects = Effects {
        events: Vec::new(),
        tasks: vec![welcome(&user)],
    };
    app.store.insert_user(&user, effects).await?;
    wake(app, &[TaskKind::Mail]);
    Ok(user)
}

/// Validates the form, and returns the user without a password.
fn checked(new: &NewUser) -> Result<User, Failure> {
    let name = check_name(&new.name)?;
    let display = new
        .display
        .as_deref()
        .map(str::trim)
        .filter(|display| !display.is_empty());
    let display = check_text("display", display.unwrap_or(&name), 1, 60)?;
    let email = check_email(&new.email)?;
    check_password(&new.password)?;
    Ok(User {
        id: Id::new(),
        name,
        display,
        email: String::new(),
        wanted_email: Some(email),
        about: String::new(),
        password: String::new(),
        webhook: None,
        digest: true,
        bell_seen: 0,
        joined_at: now(),
        generation: 0,
    })
}

fn welcome(user: &User) -> NewTask {
    NewTask {
        key: format!("welcome:{}", user.id),
        kind: TaskKind::Mail,
        payload: json!({"mail": "welcome", "user": user.id}),
        due: user.joined_at,
    }
}

/// Returns the user with this name and password. Takes as long for a name that does not exist, so
/// that names cannot be guessed by the time it takes.
///
/// # Errors
/// [`Failure::Unauthenticated`], which does not tell which of the two is wrong.
pub async fn authenticate(app: &App, name: &str, password: &str) -> Result<User, Failure> {
    let user = app
        .store
        .user_by_name(&name.trim().to_ascii_lowercase())
        .await?;
    let stored = user.as_ref().map(|user| user.password.as_str());
    let is_right = app.passwords.verify(password, stored).await?;
    match user {
        Some(user) if is_right => Ok(user),
        _ => Err(Failure::Unauthenticated(
            "the name or the password is wrong",
        )),
    }
}

/// Returns the user of a name.
///
/// # Errors
/// [`Failure::NotFound`].
pub async fn user(app: &App, name: &str) -> Result<User, Failure> {
    let name = name.to_ascii_lowercase();
    let found = app.store.user_by_name(&name).await?;
    found.ok_or(Failure::NotFound("user"))
}

/// Changes a user's profile and settings.
///
/// # Errors
/// [`Failure::Invalid`] for a field that is not allowed, [`Failure::NotFound`] if the user is gone.
pub async fn change_user(app: &App, id: Id, change: UserChange) -> Result<User, Failure> {
    if let Some(Some(webhook)) = &change.webhook {
        check_outside("webhook", webhook, app.settings.webhook.allow_private)?;
    }
    let change = UserChange {
        display: change
            .display
            .map(|text| check_text("display", &text, 1, 60))
            .transpose()?,
        about: change
            .about
            .map(|text| check_text("about", &text, 0, 500))
            .transpose()?,
        ..change
    };
    let changed = app.store.update_user(id, change).await?;
    app.cache.invalidate(&[reach_key(id)]).await;
    changed.ok_or(Failure::NotFound("user"))
}

/// Checks the form of an address that the application is to call. If it is a public one is checked
/// when it is called.
pub(super) fn check_outside(
    field: &'static str,
    url: &Url,
    allow_private: bool,
) -> Result<(), TextError> {
    let is_allowed = url.scheme() == "https" || (allow_private && url.scheme() == "http");
    if is_allowed && url.as_str().len() <= ADDRESS_BYTES_MAX {
        return Ok(());
    }
    let rule = format!(
        "an address that begins with https:// is needed, of at most {ADDRESS_BYTES_MAX} bytes"
    );
    Err(TextError { field, rule })
}

/// The ways in which a user is notified, beside the bell.
#[derive(Clone, Copy, Debug, serde::Deserialize, serde::Serialize)]
pub(super) struct Reach {
    pub(super) push: bool,
    pub(super) webhook: bool,
}

pub(crate) fn reach_key(user: Id) -> String {
    format!("reach:{user}")
}

/// Returns the cache's key for the [generation](User::generation) of a user's sessions.
pub(crate) fn generation_key(user: Id) -> String {
    format!("generation:{user}")
}

/// Returns the cache's key for the user of an API key.
pub(crate) fn author_key(user: Id) -> String {
    format!("author:{user}")
}

pub(super) async fn reach(app: &App, id: Id) -> Result<Reach, Failure> {
    let load = async {
        let user = app.store.user(id).await?;
        let pushes = app.store.pushes(id).await?;
        Ok::<_, Failure>(Reach {
            push: !pushes.is_empty() && app.outbox.push_key().is_some(),
            webhook: user.is_some_and(|user| user.webhook.is_some()),
        })
    };
    app.cache.get_or_load(&reach_key(id), USER_TTL, load).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new() -> NewUser {
        NewUser {
            name: "Ada".to_owned(),
            display: Some(" ".to_owned()),
            email: "ada@example.org".to_owned(),
            password: "a long password".to_owned(),
        }
    }

    #[test]
    fn who_signs_up_is_called_by_the_name_until_they_say_otherwise() {
        let user = checked(&new()).expect("all is allowed");
        assert_eq!((user.name.as_str(), user.display.as_str()), ("ada", "ada"));
    }

    #[test]
    fn a_wrong_field_is_named() {
        let short = NewUser {
            password: "short".to_owned(),
            ..new()
        };
        let error = checked(&short).expect_err("it is too short");
        assert_eq!(
            error.to_string(),
            "password: a password has 10 to 200 characters"
        );
    }
}
