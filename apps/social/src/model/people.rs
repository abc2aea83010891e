use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use url::Url;
use utoipa::ToSchema;

use super::Id;

/// A user who has signed up.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct User {
    /// The identifier, which never changes.
    pub id: Id,
    /// The unique name, which never changes: see [`check_name`](super::check_name).
    pub name: String,
    /// The name that others read; 1 to 60 characters.
    pub display: String,
    /// The address for mails; empty until the first one is confirmed.
    pub email: String,
    /// The address that the user asked for last, to have it once it is confirmed.
    #[serde(default)]
    pub wanted_email: Option<String>,
    /// The user's text about themself; up to 500 characters.
    pub about: String,
    /// The digest of the password: a PHC string of argon2id.
    pub password: String,
    /// The webhook that notifications are posted to, besides browsers.
    pub webhook: Option<Url>,
    /// True if a digest of the day is mailed, once there is an address.
    pub digest: bool,
    /// The sequence number of the last event of the bell that the user has seen.
    pub bell_seen: u64,
    /// The time of the sign-up.
    pub joined_at: Timestamp,
    /// The number of times that all sessions were ended: sessions and tickets of an earlier
    /// generation are invalid.
    #[serde(default)]
    pub generation: u64,
}

impl User {
    /// Returns the fields that pictures and comments carry.
    #[must_use]
    pub fn author(&self) -> Author {
        Author {
            id: self.id,
            name: self.name.clone(),
        }
    }

    /// Returns the address that waits for its confirmation.
    #[must_use]
    pub fn unconfirmed_email(&self) -> Option<&str> {
        let wanted = self.wanted_email.as_deref();
        wanted.filter(|wanted| *wanted != self.email)
    }

    /// Returns `true` if a digest is to be mailed, and there is an address for it.
    #[must_use]
    pub fn gets_digest(&self) -> bool {
        self.digest && !self.email.is_empty()
    }
}

/// The author of something. A name never changes, so it can be stored beside what was made.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize, ToSchema)]
pub struct Author {
    /// The user.
    pub id: Id,
    /// The user's unique name.
    pub name: String,
}

/// A change of a user; `None` leaves a field as it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UserChange {
    /// See [`User::display`].
    pub display: Option<String>,
    /// See [`User::about`].
    pub about: Option<String>,
    /// See [`User::webhook`]; `Some(None)` removes it.
    pub webhook: Option<Option<Url>>,
    /// See [`User::digest`].
    pub digest: Option<bool>,
    /// See [`User::bell_seen`]; a smaller number than the stored one changes nothing.
    pub bell_seen: Option<u64>,
    /// See [`User::email`].
    pub email: Option<String>,
    /// See [`User::wanted_email`].
    pub wanted_email: Option<String>,
    /// See [`User::password`].
    pub password: Option<String>,
    /// True if a new [generation](User::generation) begins: sessions, tickets, and browsers that
    /// get notifications belong to the old one, and are deleted.
    pub ends_sessions: bool,
}

/// A session of a user who has logged in.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Session {
    /// The SHA-256 of the token in the cookie, in hexadecimal digits: a reader of the database
    /// cannot log in.
    pub token_hash: String,
    /// The user to whom it belongs.
    pub user: Id,
    /// The token that a form or a script must send back with each change.
    pub csrf: String,
    /// The end, unless it is ended earlier.
    pub expires_at: Timestamp,
    /// The [generation](User::generation) of its user when it began.
    #[serde(default)]
    pub generation: u64,
}

/// A right sent by mail: to do one thing, once, without a password. It is valid for as long as the
/// user's [generation](User::generation) is the same.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Ticket {
    /// The SHA-256 of the token in the mail, in hexadecimal digits: a reader of the database can do
    /// nothing with it.
    pub token_hash: String,
    /// The user to whom it belongs.
    pub user: Id,
    /// The purpose.
    pub purpose: TicketPurpose,
    /// The address that it was sent to: for a new password the user's own, which must still be
    /// theirs; else the one that is to become theirs, which must still be wanted.
    pub email: String,
    /// The generation of the user when it was created.
    pub generation: u64,
    /// The time from which it is invalid.
    pub expires_at: Timestamp,
}

/// The purpose of a [`Ticket`].
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TicketPurpose {
    /// To confirm that mails to an address arrive.
    ConfirmEmail,
    /// To set another password.
    ResetPassword,
}

impl TicketPurpose {
    /// All purposes.
    pub const ALL: [Self; 2] = [Self::ConfirmEmail, Self::ResetPassword];

    /// Returns the name that is stored, such as `reset_password`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ConfirmEmail => "confirm_email",
            Self::ResetPassword => "reset_password",
        }
    }
}

/// A shared secret that a program signs its requests with.
#[derive(Clone, Deserialize, PartialEq, Serialize)]
pub struct ApiKey {
    /// The `keyid` of signatures.
    pub id: Id,
    /// The user on whose behalf requests are made.
    pub user: Id,
    /// The name that the user has given it; 1 to 60 characters.
    pub name: String,
    /// The key of HMAC-SHA256, 32 random bytes. It is stored in plain, since signatures cannot be
    /// checked otherwise.
    pub secret: Vec<u8>,
    /// The time of its creation.
    pub created_at: Timestamp,
}

impl std::fmt::Debug for ApiKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ApiKey")
            .field("id", &self.id)
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

/// A browser that wants notifications (the Push API's `PushSubscription`).
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct PushSubscription {
    /// The address at which the push service takes messages for this browser; unique.
    pub endpoint: Url,
    /// The user of the browser.
    pub user: Id,
    /// The browser's public key, base64url, uncompressed point of P-256.
    pub p256dh: String,
    /// The shared authentication secret, base64url, 16 bytes.
    pub auth: String,
    /// The [hash](Session::token_hash) of the session that it subscribed by, and with which it
    /// ends; `None` for a program that signs.
    #[serde(default)]
    pub session: Option<String>,
}
