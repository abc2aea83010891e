//! Changes of credentials, and deletion of accounts. The caller has checked the user's password, or
//! a token from a mail.

use jiff::Timestamp;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::albums::{albums, delete_album};
use super::people::{author_key, generation_key, reach_key};
use super::{now, wake};
use crate::completing::complete;
use crate::feed::Scope;
use crate::model::{
    Author, Id, NewTask, TaskKind, TextError, Ticket, TicketPurpose, User, UserChange, check_email,
    check_password,
};
use crate::{App, Failure, secret};

/// Interval in which mails to an address are limited, in seconds, by all replicas together.
const MAIL_EVERY_SECONDS: i64 = 300;
/// Most mails to confirm an address that it gets in an interval, whoever asks for them.
const CONFIRMATIONS_MAX: u8 = 4;

/// Sets a new password, and ends all sessions.
///
/// # Errors
/// [`Failure::Invalid`], which names `field`, if the password is not allowed; [`Failure::NotFound`]
/// if the user is gone.
pub async fn set_password(
    app: &App,
    id: Id,
    field: &'static str,
    password: &str,
) -> Result<User, Failure> {
    let change = password_change(app, field, password).await?;
    end_sessions_by(app, id, change).await
}

async fn password_change(
    app: &App,
    field: &'static str,
    password: &str,
) -> Result<UserChange, Failure> {
    check_password(password).map_err(|error| TextError { field, ..error })?;
    Ok(UserChange {
        password: Some(app.passwords.hash(password).await?),
        ends_sessions: true,
        ..UserChange::default()
    })
}

/// Ends all sessions of a user, on all replicas, with their connections to the feed, and the
/// browsers that get notifications. API keys stay.
///
/// # Errors
/// [`Failure::NotFound`] if the user is gone.
pub async fn end_sessions(app: &App, id: Id) -> Result<(), Failure> {
    let change = UserChange {
        ends_sessions: true,
        ..UserChange::default()
    };
    end_sessions_by(app, id, change).await.map(drop)
}

async fn end_sessions_by(app: &App, id: Id, change: UserChange) -> Result<User, Failure> {
    complete(store_and_forget(app.clone(), id, change)).await
}

async fn store_and_forget(app: App, id: Id, change: UserChange) -> Result<User, Failure> {
    let changed = app.store.update_user(id, change).await;
    // Also if that failed: the change may have been stored all the same.
    forget(&app, id, Scope::Sessions).await;
    changed?.ok_or(Failure::NotFound("user"))
}

/// Drops a user's cached identity, and ends these connections of theirs to the feed.
async fn forget(app: &App, id: Id, scope: Scope) {
    let keys = [generation_key(id), author_key(id), reach_key(id)];
    app.cache.invalidate(&keys).await;
    app.feed.end_connections(id, scope);
}

/// Requests a mail to each user of an address, with a link to set a new password. The users are
/// looked up only when the mails are sent, so neither the response nor its time tells if there are
/// any.
///
/// # Errors
/// [`Failure::Invalid`] if it is no address.
pub async fn ask_for_reset(app: &App, email: &str) -> Result<(), Failure> {
    let email = check_email(email)?;
    let key = format!("reset:{}", once_in_a_while(&email, now()));
    let payload = json!({"mail": "reset", "email": email});
    add_mail(app, key, payload).await
}

/// Sets a new password with a token from a mail, and ends all sessions.
///
/// # Errors
/// [`Failure::Invalid`], which names `password`, or `token` if that is not good any more.
pub async fn reset_password(app: &App, token: &str, password: &str) -> Result<User, Failure> {
    let (ticket, user) = find_ticket(app, token, TicketPurpose::ResetPassword).await?;
    let change = password_change(app, "password", password).await?;
    let app = app.clone();
    complete(async move {
        let changed = app.store.use_ticket(&ticket, change, Vec::new()).await;
        // Also if that failed, as in `store_and_forget`.
        forget(&app, user.id, Scope::Sessions).await;
        changed?.ok_or_else(no_ticket)
    })
    .await
}

/// Requests a mail to the address that a user wants to have, with a link to confirm it. Until then
/// nothing changes but that links to other addresses are good no more.
///
/// In each interval an address has a few places for such mails, among which all users are divided;
/// no mail is sent for who finds theirs taken.
///
/// # Errors
/// [`Failure::Invalid`] if it is no address, or theirs already.
pub async fn ask_for_email(app: &App, user: &User, email: &str) -> Result<(), Failure> {
    let email = check_email(email)?;
    if email == user.email {
        let (field, rule) = ("email", "this is your address already".to_owned());
        return Err(TextError { field, rule }.into());
    }
    let key = confirmation_key(user.id, &email, now());
    let payload = json!({"mail": "confirm", "user": user.id, "email": email});
    let change = UserChange {
        wanted_email: Some(email),
        ..UserChange::default()
    };
    let changed = app.store.update_user(user.id, change).await?;
    changed.ok_or(Failure::NotFound("user"))?;
    add_mail(app, key, payload).await
}

/// Sets the address that a mail's token confirms as the user's. The former address, if there is
/// one, is notified by a mail.
///
/// # Errors
/// [`Failure::Invalid`], which names `token`, if that is not good any more.
pub async fn confirm_email(app: &App, token: &str) -> Result<User, Failure> {
    let (ticket, user) = find_ticket(app, token, TicketPurpose::ConfirmEmail).await?;
    complete(confirm(app.clone(), ticket, user)).await
}

async fn confirm(app: App, ticket: Ticket, user: User) -> Result<User, Failure> {
    // With the change, so that no change is without it; Mailman checks if the change was made. Each
    // try has a key of its own: that of one that failed is not taken again.
    let key = format!("moved:{}", Id::new());
    let payload = json!({"mail": "moved", "user": user.id, "from": user.email, "to": ticket.email});
    let change = UserChange {
        email: Some(ticket.email.clone()),
        ..UserChange::default()
    };
    let is_first = user.email.is_empty();
    let notice = (!is_first).then(|| mail(key, payload));
    let notice = Vec::from_iter(notice);
    let changed = app.store.use_ticket(&ticket, change, notice).await?;
    wake(&app, &[TaskKind::Mail]);
    changed.ok_or_else(no_ticket)
}

/// Returns the ticket and the user of a valid token.
///
/// # Errors
/// See [`confirm_email`].
pub async fn find_ticket(
    app: &App,
    token: &str,
    purpose: TicketPurpose,
) -> Result<(Ticket, User), Failure> {
    let hash = secret::hash(token).ok_or_else(no_ticket)?;
    let ticket = app.store.ticket(&hash, now()).await?;
    let ticket = ticket.filter(|ticket| ticket.purpose == purpose);
    let ticket = ticket.ok_or_else(no_ticket)?;
    let user = app.store.user(ticket.user).await?;
    let is_good = |user: &User| {
        let expected = match purpose {
            TicketPurpose::ConfirmEmail => user.wanted_email.as_ref(),
            TicketPurpose::ResetPassword => Some(&user.email),
        };
        user.generation == ticket.generation && expected == Some(&ticket.email)
    };
    let user = user.filter(is_good).ok_or_else(no_ticket)?;
    Ok((ticket, user))
}

fn no_ticket() -> Failure {
    let rule = "this link was used before, is too old, or went to an address that you do not want \
                any more; ask for another one"
        .to_owned();
    let field = "token";
    TextError { field, rule }.into()
}

/// Returns the part of a task's key that changes with the interval; a key is unique for ever.
fn once_in_a_while(email: &str, now: Timestamp) -> String {
    let digest = Sha256::digest(email);
    let time = now.as_second() / MAIL_EVERY_SECONDS;
    format!("{}:{time}", hex::encode(&digest[..16]))
}

/// Returns the key of a task for a mail to confirm an address. It names the user's place, and not
/// the user: else many users together could have any number of mails sent to somebody.
fn confirmation_key(user: Id, email: &str, now: Timestamp) -> String {
    // The last byte of an identifier is random.
    let place = user.as_bytes()[15] % CONFIRMATIONS_MAX;
    format!("confirm:{}:{place}", once_in_a_while(email, now))
}

async fn add_mail(app: &App, key: String, payload: serde_json::Value) -> Result<(), Failure> {
    app.store.add_tasks(vec![mail(key, payload)]).await?;
    wake(app, &[TaskKind::Mail]);
    Ok(())
}

fn mail(key: String, payload: serde_json::Value) -> NewTask {
    NewTask {
        key,
        kind: TaskKind::Mail,
        payload,
        due: now(),
    }
}

/// Deletes a user, at once, with their albums, pictures, sessions, keys and browsers. Their
/// comments and likes are deleted later, by the actor Janitor, and their name is free when that is
/// done.
///
/// # Errors
/// [`Failure::NotFound`] if they are gone already.
pub async fn delete_account(app: &App, user: &Author) -> Result<(), Failure> {
    for album in albums(app, user.id).await? {
        match delete_album(app, user.id, album.id).await {
            Ok(()) | Err(Failure::NotFound(_)) => {}
            Err(failure) => return Err(failure),
        }
    }
    let (app, id) = (app.clone(), user.id);
    complete(async move {
        let deleted = app.store.delete_user(id).await;
        forget(&app, id, Scope::All).await;
        if !deleted? {
            return Err(Failure::NotFound("user"));
        }
        wake(&app, &[TaskKind::Remove]);
        Ok(())
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn an_address_gets_one_mail_in_five_minutes() {
        let key = |email, second| {
            let now = Timestamp::from_second(second).expect("a time");
            once_in_a_while(email, now)
        };
        let first = key("ada@example.org", 1_699_999_800);
        assert_eq!(first, key("ada@example.org", 1_700_000_099));
        assert_ne!(first, key("ada@example.org", 1_700_000_100));
        assert_ne!(first, key("bob@example.org", 1_699_999_800));
        assert!(!first.contains("ada"), "{first}");
    }

    #[test]
    fn many_users_have_few_mails_sent_to_an_address_and_one_user_has_one() {
        let now = Timestamp::UNIX_EPOCH;
        let key = |user, email| confirmation_key(user, email, now);
        let users: Vec<_> = (0..=u8::MAX)
            .map(|last| Id::from_bytes([last; 16]))
            .collect();
        let keys: HashSet<_> = users
            .iter()
            .map(|user| key(*user, "ada@example.org"))
            .collect();
        assert_eq!(keys.len(), usize::from(CONFIRMATIONS_MAX));
        let again = key(users[7], "ada@example.org");
        assert!(keys.contains(&again), "{again}");
        assert!(!keys.contains(&key(users[7], "bob@example.org")));
    }
}
