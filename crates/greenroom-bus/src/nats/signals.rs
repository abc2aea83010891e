//! The client's word of what happens to a connection, from its callbacks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use async_nats::Event;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::LinkError;

/// The time after which the client would connect again. Its runtime ends long before.
const NEVER: Duration = Duration::from_hours(24);

#[derive(Default)]
pub(super) struct Signals {
    is_connected: AtomicBool,
    is_over: AtomicBool,
    error: Mutex<Option<LinkError>>,
    over: Notify,
    complaints: Mutex<Vec<String>>,
    /// Notified when the server has complained.
    pub(super) complained: Notify,
}

impl Signals {
    /// Notes that the first connection is made: it is the only one.
    pub(super) fn connected(&self) {
        self.is_connected.store(true, Ordering::Relaxed);
    }

    /// Returns the client's pause before a try to connect. One after the first connection tells
    /// that it is lost.
    pub(super) fn delay(&self) -> Duration {
        if self.is_connected.load(Ordering::Relaxed) {
            self.end(LinkError::Closed);
            return NEVER;
        }
        Duration::ZERO
    }

    pub(super) fn take(&self, event: Event) {
        match event {
            Event::ServerError(error) => {
                self.complaints.lock().push(words(&error.to_string()));
                self.complained.notify_one();
            }
            Event::SlowConsumer(_) => self.end(LinkError::Overrun),
            Event::Disconnected | Event::Closed => self.end(LinkError::Closed),
            _ => {}
        }
    }

    /// Ends the connection. The first reason counts.
    pub(super) fn end(&self, error: LinkError) {
        self.error.lock().get_or_insert(error);
        self.is_over.store(true, Ordering::Release);
        self.over.notify_one();
    }

    /// Returns `true` once the connection has ended, or has lost messages.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Waits for the end of the connection. One task may wait.
    pub(super) async fn over(&self) -> LinkError {
        self.over.notified().await;
        self.error.lock().take().unwrap_or(LinkError::Closed)
    }

    pub(super) fn take_complaints(&self) -> Vec<Complaint> {
        let texts = std::mem::take(&mut *self.complaints.lock());
        texts.into_iter().map(Complaint::new).collect()
    }
}

/// Ends the connection if the task that it is kept by panics: messages would be missing otherwise,
/// and nobody would know.
pub(super) struct EndsWithPanic(pub(super) Arc<Signals>);

impl Drop for EndsWithPanic {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.end(LinkError::Panicked);
        }
    }
}

/// Returns the server's own words.
fn words(error: &str) -> String {
    error.strip_prefix("nats: ").unwrap_or(error).to_owned()
}

/// An error that the server reported by itself: a subject that the user may not use, mostly.
pub(super) struct Complaint {
    pub(super) text: String,
}

impl Complaint {
    fn new(text: String) -> Self {
        Self { text }
    }

    /// Returns `true` if the user may not subscribe to this subject.
    pub(super) fn is_of_subscription(&self, subject: &str) -> bool {
        self.is_of("Permissions Violation for Subscription to ", subject)
    }

    /// Returns `true` if the user may not publish to this subject.
    pub(super) fn is_of_publish(&self, subject: &str) -> bool {
        self.is_of("Permissions Violation for Publish to ", subject)
    }

    fn is_of(&self, what: &str, subject: &str) -> bool {
        let quoted = self.text.strip_prefix(what);
        let rest = quoted.and_then(|quoted| quoted.strip_prefix('"')?.strip_prefix(subject));
        rest.is_some_and(|rest| rest.starts_with('"'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_complaint_is_of_its_subject_only() {
        let text = r#"Permissions Violation for Publish to "app.closed""#;
        let complaint = Complaint::new(text.to_owned());
        assert!(complaint.is_of_publish("app.closed"));
        assert!(!complaint.is_of_publish("app.close"));
        assert!(!complaint.is_of_subscription("app.closed"));
        let text = r#"Permissions Violation for Subscription to "app.>" using queue "a""#;
        assert!(Complaint::new(text.to_owned()).is_of_subscription("app.>"));
    }
}
