use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use url::Url;
use utoipa::ToSchema;

use super::Id;

/// Somebody who has signed up.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct User {
    /// Never changes.
    pub id: Id,
    /// Unique, and never changes: see [`check_name`](super::check_name).
    pub name: String,
    /// What others read; 1 to 60 characters.
    pub display: String,
    /// Where mails go.
    pub email: String,
    /// What the user says of themself; up to 500 characters.
    pub about: String,
    /// A PHC string of argon2id.
    pub password: String,
    /// Where notifications are posted to, beside the browser.
    pub webhook: Option<Url>,
    /// Whether a digest of the day is mailed.
    pub digest: bool,
    /// The sequence number of the last event of the bell that the user has seen.
    pub bell_seen: u64,
    /// When they signed up.
    pub joined_at: Timestamp,
    /// Counts how often all sessions were ended: those of an earlier generation hold no more, nor do tickets.
    #[serde(default)]
    pub generation: u64,
}

impl User {
    /// The part that pictures and comments carry.
    #[must_use]
    pub fn author(&self) -> Author {
        Author {
            id: self.id,
            name: self.name.clone(),
        }
    }
}

/// Who made something. A name never changes, so it can be kept beside what was made.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize, ToSchema)]
pub struct Author {
    /// The user.
    pub id: Id,
    /// Their unique name.
    pub name: String,
}

/// What of a user changes; `None` leaves it.
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
    /// See [`User::password`].
    pub password: Option<String>,
    /// Whether a new [generation](User::generation) begins: sessions, tickets, and browsers that get notifications
    /// belong to the old one, and are deleted.
    pub ends_sessions: bool,
}

/// A log-in that lasts.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Session {
    /// The SHA-256 of the token in the cookie, as hexadecimal digits: who reads the database cannot log in.
    pub token_hash: String,
    /// Whose it is.
    pub user: Id,
    /// What a form or a script must send back with each change.
    pub csrf: String,
    /// When it ends by itself.
    pub expires_at: Timestamp,
    /// Of its user when it began: see [`User::generation`].
    #[serde(default)]
    pub generation: u64,
}

/// A right that was sent by mail: to do one thing, once, without a password. Each is good for as long as the user's
/// [generation](User::generation) is the same.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Ticket {
    /// The SHA-256 of the token in the mail, as hexadecimal digits: who reads the database can do nothing with it.
    pub token_hash: String,
    /// Whose it is.
    pub user: Id,
    /// What it is for.
    pub purpose: TicketPurpose,
    /// The address that it was sent to: for a new password the user's own, which must still be theirs; else the one
    /// that is to become theirs.
    pub email: String,
    /// Of the user when it was made.
    pub generation: u64,
    /// From then on it is good for nothing.
    pub expires_at: Timestamp,
}

/// What a [`Ticket`] is for.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TicketPurpose {
    /// To say that mails to an address arrive.
    ConfirmEmail,
    /// To set another password.
    ResetPassword,
}

impl TicketPurpose {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::ConfirmEmail, Self::ResetPassword];

    /// As it is stored: `reset_password`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ConfirmEmail => "confirm_email",
            Self::ResetPassword => "reset_password",
        }
    }
}

/// A shared secret with which a program signs its requests.
#[derive(Clone, Deserialize, PartialEq, Serialize)]
pub struct ApiKey {
    /// The `keyid` of signatures.
    pub id: Id,
    /// For whom requests are made.
    pub user: Id,
    /// What the user calls it; 1 to 60 characters.
    pub name: String,
    /// 32 random bytes, the key of HMAC-SHA256. It must be there in plain to check signatures.
    pub secret: Vec<u8>,
    /// When it was made.
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
    /// Where the push service takes messages for this browser; unique.
    pub endpoint: Url,
    /// Whose browser it is.
    pub user: Id,
    /// The browser's public key, base64url, uncompressed point of P-256.
    pub p256dh: String,
    /// The shared authentication secret, base64url, 16 bytes.
    pub auth: String,
    /// The [hash](Session::token_hash) of the session by which it subscribed, and with which it ends; `None` for a
    /// program that signs.
    #[serde(default)]
    pub session: Option<String>,
}
