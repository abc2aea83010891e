//! Mails to users who change their credentials. A token is made when its mail is written, so it
//! stands nowhere but in the mail.

use std::time::Duration;

use serde_json::json;

use super::Mailman;
use super::letter::{self, Letter};
use crate::model::{Id, NewTask, Task, TaskKind, Ticket, TicketPurpose, User};
use crate::outbox::links;
use crate::outbox::worker::Setback;
use crate::secret;

/// Lifetime of a token, from when its mail is written; a mail that could not be sent for so long is
/// dropped, but for a welcome.
const TOKEN_FOR: Duration = Duration::from_hours(1);
/// Most users of one address that are sent a mail.
const USERS_MAX: u32 = 10;
/// Time after the request during which a change may still be on its way to the storage.
const CHANGE_MAX: Duration = Duration::from_secs(15);

impl Mailman {
    /// Writes the welcome, with a link to confirm the address; `None` if the user is gone, or wants
    /// another one by now. The same holds for the other mails.
    pub(super) async fn welcome(&self, user: Id) -> Result<Option<Letter>, Setback> {
        let Some(user) = self.store.user(user).await? else {
            return Ok(None);
        };
        let Some(email) = user.unconfirmed_email().filter(|_| user.email.is_empty()) else {
            return Ok(None);
        };
        let token = self
            .ticket(&user, TicketPurpose::ConfirmEmail, email)
            .await?;
        let page = links::confirm_email(&self.base_url, &token);
        letter::welcome(&user, email, &page).map(Some)
    }

    /// Adds one task for each user, so that a failed mail is sent again only to its own recipient.
    pub(super) async fn reset_each(&self, task: &Task, email: &str) -> Result<(), Setback> {
        let users = self.store.users_by_email(email, USERS_MAX).await?;
        let due = (self.clock)();
        let tasks = users.iter().map(|user| NewTask {
            key: format!("{}:{}", task.key, user.id),
            kind: TaskKind::Mail,
            payload: json!({"mail": "reset_of", "user": user.id, "email": email}),
            due,
        });
        Ok(self.store.add_tasks(tasks.collect()).await?)
    }

    pub(super) async fn reset(
        &self,
        task: &Task,
        user: Id,
        email: &str,
    ) -> Result<Option<Letter>, Setback> {
        let user = self.store.user(user).await?;
        let Some(user) = user.filter(|user| user.email == email) else {
            return Ok(None);
        };
        let purpose = TicketPurpose::ResetPassword;
        let token = self.token(task, &user, purpose, email).await?;
        let page = links::reset_password(&self.base_url, &token);
        letter::reset(&user, &page).map(Some)
    }

    /// Writes the mail to an address that a user has asked for. Its link is good while that is the
    /// last one that they asked for.
    pub(super) async fn confirm(
        &self,
        task: &Task,
        user: Id,
        email: &str,
    ) -> Result<Option<Letter>, Setback> {
        let Some(user) = self.store.user(user).await? else {
            return Ok(None);
        };
        let purpose = TicketPurpose::ConfirmEmail;
        let token = self.token(task, &user, purpose, email).await?;
        let page = links::confirm_email(&self.base_url, &token);
        letter::confirm(&user, email, &page).map(Some)
    }

    /// Writes the mail to a user's former address; `None` if the change was not made after all.
    pub(super) async fn moved(
        &self,
        task: &Task,
        user: Id,
        from: &str,
        to: &str,
    ) -> Result<Option<Letter>, Setback> {
        let Some(user) = self.store.user(user).await? else {
            return Ok(None);
        };
        // It may be a third one by now.
        if user.email != from {
            return letter::moved(&user, from, to).map(Some);
        }
        if self.age(task) < CHANGE_MAX {
            return Err(Setback::temporary("the address is not changed yet"));
        }
        Ok(None)
    }

    async fn token(
        &self,
        task: &Task,
        user: &User,
        purpose: TicketPurpose,
        email: &str,
    ) -> Result<String, Setback> {
        if self.age(task) >= TOKEN_FOR {
            return Err(Setback::permanent("it was asked for too long ago"));
        }
        self.ticket(user, purpose, email).await
    }

    /// Adds a ticket; returns its token.
    async fn ticket(
        &self,
        user: &User,
        purpose: TicketPurpose,
        email: &str,
    ) -> Result<String, Setback> {
        let token = secret::random_text();
        let hash = secret::hash(&token);
        let ticket = Ticket {
            token_hash: hash.ok_or_else(|| Setback::permanent("a token has a hash"))?,
            user: user.id,
            purpose,
            email: email.to_owned(),
            generation: user.generation,
            expires_at: (self.clock)() + TOKEN_FOR,
        };
        self.store.insert_ticket(&ticket).await?;
        Ok(token)
    }

    fn age(&self, task: &Task) -> Duration {
        let age = (self.clock)().duration_since(task.added_at);
        Duration::try_from(age).unwrap_or_default()
    }
}
