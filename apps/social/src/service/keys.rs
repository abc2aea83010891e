use super::now;
use crate::completing::complete;
use crate::feed::{Credential, Scope};
use crate::model::{ApiKey, Id, check_text};
use crate::{App, Failure};

/// The most keys of a user.
const KEYS_MAX: usize = 20;

/// Makes a key for a user's programs.
///
/// # Errors
/// [`Failure::Invalid`] if the name is not allowed, [`Failure::Conflict`] if the user has too many.
pub async fn create_key(app: &App, user: Id, name: &str) -> Result<ApiKey, Failure> {
    let name = check_text("name", name, 1, 60)?;
    if keys(app, user).await?.len() >= KEYS_MAX {
        let text = format!("a user has at most {KEYS_MAX} keys; delete one first");
        return Err(Failure::Conflict(text));
    }
    let key = ApiKey {
        id: Id::new(),
        user,
        name,
        secret: rand::random::<[u8; 32]>().to_vec(),
        created_at: now(),
    };
    app.store.insert_key(&key).await?;
    Ok(key)
}

/// Returns a user's keys, the oldest first.
///
/// # Errors
/// Those of the storage.
pub async fn keys(app: &App, user: Id) -> Result<Vec<ApiKey>, Failure> {
    Ok(app.store.keys(user).await?)
}

/// Deletes a user's key: requests signed with it are rejected from then on, and its connections to
/// the feed end.
///
/// # Errors
/// [`Failure::NotFound`] if the user has no such key.
pub async fn delete_key(app: &App, user: Id, id: Id) -> Result<(), Failure> {
    let app = app.clone();
    complete(async move {
        if !app.store.delete_key(id, user).await? {
            return Err(Failure::NotFound("key"));
        }
        let scope = Scope::Credential(Credential::Key(id));
        app.feed.end_connections(user, scope);
        Ok(())
    })
    .await
}
