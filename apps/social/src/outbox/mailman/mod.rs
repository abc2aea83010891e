//! Sends mails: welcomes, digests of the day, and those to users who change their credentials.

mod credentials;
mod digest;
mod letter;
mod smtp;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use jiff::civil::Date;
use lettre::message::Mailbox;
use parking_lot::Mutex;
use serde::Deserialize;
use url::Url;

use super::Clock;
use super::worker::{Doer, Setback, payload};
use crate::config::Settings;
use crate::model::{Id, Task, TaskKind, User};
use crate::store::{self, Store};
use letter::Letter;
use smtp::Smtp;

/// Interval of the check whether digests are due.
const DIGEST_CHECK_EVERY: Duration = Duration::from_mins(5);

/// A worker that writes mails, and passes them to a server, or to the log if there is none.
pub(super) struct Mailman {
    store: Arc<dyn Store>,
    clock: Clock,
    smtp: Option<Smtp>,
    from: Mailbox,
    base_url: Url,
    digest_hour: i8,
    give_up_after: Duration,
    timeout: Duration,
    /// The last day whose digests this replica has added.
    digests_of: Mutex<Option<Date>>,
}

#[derive(Deserialize)]
#[serde(tag = "mail", rename_all = "snake_case")]
enum MailTask {
    Welcome {
        user: Id,
    },
    Digest {
        user: Id,
        day: Date,
    },
    /// Somebody who claims this address has forgotten a password.
    Reset {
        email: String,
    },
    /// One of the users of such an address.
    ResetOf {
        user: Id,
        email: String,
    },
    /// A user wants to have this address.
    Confirm {
        user: Id,
        email: String,
    },
    /// A user has another address.
    Moved {
        user: Id,
        from: String,
        to: String,
    },
}

impl Mailman {
    pub(super) fn new(
        store: &Arc<dyn Store>,
        settings: &Settings,
        clock: &Clock,
    ) -> anyhow::Result<Self> {
        let mail = &settings.mail;
        let hour = mail.digest_hour;
        ensure!(
            (0..24).contains(&hour),
            "`mail.digest_hour` is {hour}; it must be 0 to 23"
        );
        let from = mail
            .from
            .parse()
            .with_context(|| format!("`mail.from`: `{}`", mail.from))?;
        let smtp = settings.smtp.as_ref().map(Smtp::new).transpose()?;
        Ok(Self {
            store: Arc::clone(store),
            clock: Arc::clone(clock),
            smtp,
            from,
            base_url: settings.base_url(),
            digest_hour: hour,
            give_up_after: mail.give_up_after,
            timeout: mail.timeout,
            digests_of: Mutex::new(None),
        })
    }

    /// Writes a digest; `None` if the user is gone, there are no news after all, or the user wants
    /// no digest any more.
    async fn digest(&self, user: Id, day: Date) -> Result<Option<Letter>, Setback> {
        let user = self.store.user(user).await?;
        let Some(user) = user.filter(User::gets_digest) else {
            return Ok(None);
        };
        let window = digest::window(day, self.digest_hour);
        let Some(news) = digest::news(&*self.store, user.id, &window).await? else {
            return Ok(None);
        };
        Ok(Some(letter::digest(&user, &self.base_url, &news)?))
    }

    async fn deliver(&self, letter: &Letter, task: &Task) -> Result<(), Setback> {
        let host = self.base_url.host_str().unwrap_or("localhost");
        let message = letter.message(&self.from, task, host)?;
        let Some(smtp) = &self.smtp else {
            let (to, subject, text) = (
                letter.to.to_string(),
                letter.subject.as_str(),
                letter.text.as_str(),
            );
            tracing::info!(to, subject, text, "a mail");
            return Ok(());
        };
        let sent = tokio::time::timeout(self.timeout, smtp.send(&message)).await;
        sent.unwrap_or_else(|_| {
            Err(Setback::temporary(
                "the mail server did not respond in time",
            ))
        })
    }

    fn set_digests_of(&self, day: Date) {
        *self.digests_of.lock() = Some(day);
    }

    fn has_digests_of(&self, day: Date) -> bool {
        *self.digests_of.lock() == Some(day)
    }
}

impl Doer for Mailman {
    const KIND: TaskKind = TaskKind::Mail;
    const CHORE_EVERY: Option<Duration> = Some(DIGEST_CHECK_EVERY);

    fn give_up_after(&self) -> Option<Duration> {
        Some(self.give_up_after)
    }

    async fn attempt(&self, task: &Task) -> Result<(), Setback> {
        let letter = match payload(task)? {
            MailTask::Welcome { user } => self.welcome(user).await?,
            MailTask::Digest { user, day } => self.digest(user, day).await?,
            MailTask::Reset { email } => return self.reset_each(task, &email).await,
            MailTask::ResetOf { user, email } => self.reset(task, user, &email).await?,
            MailTask::Confirm { user, email } => self.confirm(task, user, &email).await?,
            MailTask::Moved { user, from, to } => self.moved(task, user, &from, &to).await?,
        };
        match letter {
            Some(letter) => self.deliver(&letter, task).await,
            None => Ok(()),
        }
    }

    /// Adds the tasks for the digests of the last day whose hour has come.
    async fn chore(&self) -> store::Result<()> {
        let now = (self.clock)();
        let day = digest::day_that_is_due(now, self.digest_hour);
        if !self.has_digests_of(day) {
            digest::add_tasks(&*self.store, day, self.digest_hour, now).await?;
            self.set_digests_of(day);
        }
        Ok(())
    }
}
