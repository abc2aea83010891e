//! What mails say.

use askama::Template;
use lettre::Message;
use lettre::message::header::{HeaderName, HeaderValue};
use lettre::message::{Mailbox, MultiPart};
use sha2::{Digest, Sha256};
use url::Url;

use super::digest::News;
use crate::model::{Task, User};
use crate::outbox::links;
use crate::outbox::worker::Setback;

/// A mail before it is dressed for its journey.
pub(super) struct Letter {
    pub(super) to: Mailbox,
    pub(super) subject: String,
    pub(super) text: String,
    html: String,
    /// Where such mails are switched off.
    unsubscribe: Option<Url>,
}

#[derive(Template)]
#[template(path = "mail/welcome.txt")]
struct WelcomeText<'a> {
    user: &'a User,
    home: &'a Url,
}

#[derive(Template)]
#[template(path = "mail/welcome.html")]
struct WelcomeHtml<'a> {
    user: &'a User,
    home: &'a Url,
}

#[derive(Template)]
#[template(path = "mail/digest.txt")]
struct DigestText<'a> {
    user: &'a User,
    base: &'a Url,
    news: &'a News,
    settings: &'a Url,
}

#[derive(Template)]
#[template(path = "mail/digest.html")]
struct DigestHtml<'a> {
    user: &'a User,
    base: &'a Url,
    news: &'a News,
    settings: &'a Url,
}

pub(super) fn welcome(user: &User, home: &Url) -> Result<Letter, Setback> {
    Ok(Letter {
        to: mailbox(user)?,
        subject: "Welcome to Greenroom social".to_owned(),
        text: rendered(&WelcomeText { user, home })?,
        html: rendered(&WelcomeHtml { user, home })?,
        unsubscribe: None,
    })
}

pub(super) fn digest(user: &User, base: &Url, news: &News) -> Result<Letter, Setback> {
    let settings = &links::settings(base);
    let text = DigestText {
        user,
        base,
        news,
        settings,
    };
    let html = DigestHtml {
        user,
        base,
        news,
        settings,
    };
    Ok(Letter {
        to: mailbox(user)?,
        subject: "What happened to your pictures today".to_owned(),
        text: rendered(&text)?,
        html: rendered(&html)?,
        unsubscribe: Some(settings.clone()),
    })
}

/// With the name, which is checked strictly: anybody can sign up with a stranger's address, and what is free
/// could carry a text to them.
fn mailbox(user: &User) -> Result<Mailbox, Setback> {
    let address = user.email.parse().map_err(Setback::permanent)?;
    Ok(Mailbox::new(Some(user.name.clone()), address))
}

fn rendered(template: &impl Template) -> Result<String, Setback> {
    template.render().map_err(Setback::permanent)
}

impl Letter {
    /// Whoever gets a task's mail twice sees it by the same `Message-ID`.
    pub(super) fn message(
        &self,
        from: &Mailbox,
        task: &Task,
        host: &str,
    ) -> Result<Message, Setback> {
        let mut builder = Message::builder()
            .from(from.clone())
            .to(self.to.clone())
            .subject(&self.subject)
            .date(task.added_at.into())
            .message_id(Some(message_id(&task.key, host)))
            .raw_header(header("Auto-Submitted", "auto-generated".to_owned()));
        if let Some(page) = &self.unsubscribe {
            builder = builder.raw_header(header("List-Unsubscribe", format!("<{page}>")));
        }
        let body = MultiPart::alternative_plain_html(self.text.clone(), self.html.clone());
        builder.multipart(body).map_err(Setback::permanent)
    }
}

fn header(name: &'static str, value: String) -> HeaderValue {
    HeaderValue::new(HeaderName::new_from_ascii_str(name), value)
}

fn message_id(key: &str, host: &str) -> String {
    let digest = Sha256::digest(key);
    format!("<{}@{host}>", hex::encode(&digest[..16]))
}
