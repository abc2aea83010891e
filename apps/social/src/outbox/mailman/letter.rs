//! The text of mails.

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

/// The content of a mail, before it becomes a MIME message.
pub(super) struct Letter {
    pub(super) to: Mailbox,
    pub(super) subject: String,
    pub(super) text: String,
    html: String,
    /// Address of the page that switches such mails off.
    unsubscribe: Option<Url>,
}

#[derive(Template)]
#[template(path = "mail/welcome.txt")]
struct WelcomeText<'a> {
    user: &'a User,
    page: &'a Url,
}

#[derive(Template)]
#[template(path = "mail/welcome.html")]
struct WelcomeHtml<'a> {
    user: &'a User,
    page: &'a Url,
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

/// The plain text of a mail with one link, or none.
#[derive(Template)]
#[template(path = "mail/plain.txt")]
struct PlainText<'a> {
    user: &'a User,
    before: &'a str,
    page: Option<&'a Url>,
    after: &'a str,
}

#[derive(Template)]
#[template(path = "mail/plain.html")]
struct PlainHtml<'a> {
    user: &'a User,
    before: &'a str,
    page: Option<&'a Url>,
    link: &'a str,
    after: &'a str,
}

struct Plain<'a> {
    to: &'a str,
    subject: &'a str,
    before: &'a str,
    page: Option<&'a Url>,
    /// Label of the link, for parts of the mail in which it is not written out.
    link: &'a str,
    after: &'a str,
}

impl Plain<'_> {
    fn letter(&self, user: &User) -> Result<Letter, Setback> {
        let text = PlainText {
            user,
            before: self.before,
            page: self.page,
            after: self.after,
        };
        let html = PlainHtml {
            user,
            before: self.before,
            page: self.page,
            link: self.link,
            after: self.after,
        };
        Ok(Letter {
            to: mailbox_at(user, self.to)?,
            subject: self.subject.to_owned(),
            text: rendered(&text)?,
            html: rendered(&html)?,
            unsubscribe: None,
        })
    }
}

pub(super) fn reset(user: &User, page: &Url) -> Result<Letter, Setback> {
    let plain = Plain {
        to: &user.email,
        subject: "A new password for Greenroom social",
        before: "somebody, hopefully you, wants to set a new password for your account. This link \
            is good for an hour, and once:",
        page: Some(page),
        link: "Set a new password",
        after: "If it was not you, you need not do anything: your password stays as it is.",
    };
    plain.letter(user)
}

pub(super) fn confirm(user: &User, email: &str, page: &Url) -> Result<Letter, Setback> {
    let plain = Plain {
        to: email,
        subject: "Is this your new address?",
        before: "mails for your account are to come to this address. Please confirm that they \
            arrive. This link is good for an hour, and once:",
        page: Some(page),
        link: "Yes, this is my address",
        after: "If you know nothing of this, you need not do anything.",
    };
    plain.letter(user)
}

pub(super) fn moved(user: &User, from: &str, to: &str) -> Result<Letter, Setback> {
    let before = format!("mails for your account now go to {to}, and no longer to this address.");
    let plain = Plain {
        to: from,
        subject: "Your mails go to another address now",
        before: &before,
        page: None,
        link: "",
        after: "If it was not you who changed that, somebody else knows your password. Write to \
            whoever runs this network.",
    };
    plain.letter(user)
}

pub(super) fn welcome(user: &User, email: &str, page: &Url) -> Result<Letter, Setback> {
    Ok(Letter {
        to: mailbox_at(user, email)?,
        subject: "Welcome to Greenroom social".to_owned(),
        text: rendered(&WelcomeText { user, page })?,
        html: rendered(&WelcomeHtml { user, page })?,
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
        to: mailbox_at(user, &user.email)?,
        subject: "What happened to your pictures today".to_owned(),
        text: rendered(&text)?,
        html: rendered(&html)?,
        unsubscribe: Some(settings.clone()),
    })
}

/// Parses the address together with the name, strictly: anybody can sign up with a stranger's
/// address, and an unchecked name could carry a text to them.
fn mailbox_at(user: &User, address: &str) -> Result<Mailbox, Setback> {
    let address = address.parse().map_err(Setback::permanent)?;
    Ok(Mailbox::new(Some(user.name.clone()), address))
}

fn rendered(template: &impl Template) -> Result<String, Setback> {
    template.render().map_err(Setback::permanent)
}

impl Letter {
    /// Returns the MIME message. Its `Message-ID` is the same at each try, so a recipient
    /// recognises a mail that comes twice.
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
