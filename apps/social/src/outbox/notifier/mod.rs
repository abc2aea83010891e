//! Notifies users at once of what others did with their pictures: browsers by Web Push, programs by
//! a webhook.

mod places;
mod push;
mod vapid;
mod webhook;

use serde::{Deserialize, Serialize};

use crate::model::Id;
use places::Places;
pub(super) use push::PushNotifier;
pub(super) use vapid::Vapid;
pub(super) use webhook::WebhookNotifier;

/// A notification and its recipient.
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
