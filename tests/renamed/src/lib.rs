//! An actor whose messages are made by `greenroom::actor::messages`, under another name. Of this
//! library greenroom-actor is no dependency; it is one of the tests.

use rooms::actor::{Actor, ReplyTo, messages};

/// An actor that replies with the text of its messages.
#[derive(Debug)]
pub struct Echo;

impl Actor for Echo {}

#[messages]
impl Echo {
    /// Replies when it returns.
    #[message]
    pub fn now(&mut self, text: String) -> String {
        text
    }

    /// Replies when it has waited.
    #[message]
    pub async fn soon(&mut self, text: String) -> String {
        std::future::ready(text).await
    }

    /// Replies by a `ReplyTo`.
    #[message]
    pub fn later(&mut self, text: String, reply: ReplyTo<String>) {
        reply.send(text);
    }
}
