//! Tells users at once what others did with their pictures: their browsers by Web Push, anything else by a webhook.

mod push;
mod vapid;
mod webhook;

use serde::{Deserialize, Serialize};

use crate::model::Id;
pub(super) use push::PushNotifier;
pub(super) use vapid::Vapid;
pub(super) use webhook::WebhookNotifier;

/// What is to be told to whom.
#[derive(Clone, Deserialize, Serialize)]
struct Notice {
    user: Id,
    kind: Kind,
    by: String,
    picture: Id,
}

#[derive(Clone, Copy, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Like,
    Comment,
}

impl Notice {
    fn title(&self) -> String {
        match self.kind {
            Kind::Like => format!("{} likes your picture", self.by),
            Kind::Comment => format!("{} has commented on your picture", self.by),
        }
    }
}
