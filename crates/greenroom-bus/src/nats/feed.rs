//! The messages of one subject.

use std::sync::Arc;

use async_nats::Subscriber;
use futures_util::StreamExt;
use tokio::task::{AbortHandle, coop};
use tracing::debug;

use crate::core::Core;
use crate::{Message, Pattern};

use super::Nats;
use super::signals::{EndsWithPanic, Signals};

/// A subscription of one subject, which delivers to those of the pattern that the subject is.
pub(super) struct Feed {
    pub(super) core: Arc<Core>,
    pub(super) nats: Arc<Nats>,
    pub(super) signals: Arc<Signals>,
    pub(super) pattern: Pattern,
    pub(super) subscriber: Subscriber,
}

impl Feed {
    /// Delivers until the task is aborted.
    pub(super) fn spawn(self) -> AbortHandle {
        // All that has come is delivered at once: the client reads on only then, and drops what
        // finds no space.
        tokio::spawn(coop::unconstrained(self.run())).abort_handle()
    }

    async fn run(mut self) {
        let _guard = EndsWithPanic(Arc::clone(&self.signals));
        while let Some(message) = self.subscriber.next().await {
            // Newer messages than those that were lost must not come before the gap.
            if self.signals.is_over() {
                return;
            }
            self.deliver(&message.subject, message.payload);
        }
    }

    fn deliver(&self, subject: &str, payload: bytes::Bytes) {
        let by_name = self.pattern.topic();
        let Some(topic) = by_name.or_else(|| self.nats.names.topic(subject)) else {
            debug!(subject, "a wildcard of ours found what is no topic of ours");
            return;
        };
        if let Some(members) = self.core.members(&self.pattern) {
            self.core
                .deliver_to(&[members], &Message::new(topic, payload));
        }
    }
}
