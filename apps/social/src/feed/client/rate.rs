use std::time::Duration;

use tokio::time::Instant;

/// Messages that a client may send within [`WINDOW`].
const MESSAGES_MAX: u16 = 100;
const WINDOW: Duration = Duration::from_secs(10);

/// How much a client says.
#[derive(Debug, Default)]
pub(super) struct Rate {
    since: Option<Instant>,
    messages: u16,
}

impl Rate {
    /// Counts a message; false if it is one too many.
    pub(super) fn admits_one(&mut self) -> bool {
        let now = Instant::now();
        if self.since.is_none_or(|since| now - since >= WINDOW) {
            *self = Self {
                since: Some(now),
                messages: 0,
            };
        }
        self.messages = self.messages.saturating_add(1);
        self.messages <= MESSAGES_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_window_later_a_client_may_speak_again() {
        let mut rate = Rate::default();
        assert!((0..MESSAGES_MAX).all(|_| rate.admits_one()));
        assert!(!rate.admits_one());
        tokio::time::advance(WINDOW).await;
        assert!(rate.admits_one());
    }
}
