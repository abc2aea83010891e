use std::time::Duration;

use tokio::time::Instant;

/// The most messages that a client may send within [`WINDOW`], together with the topics that it
/// names in them.
const ITEMS_MAX: usize = 1_000;
const WINDOW: Duration = Duration::from_secs(10);

/// A count of a client's messages and topics.
#[derive(Debug, Default)]
pub(super) struct Rate {
    since: Option<Instant>,
    items: usize,
}

impl Rate {
    /// Counts a message that asks for so many topics; returns `false` if that exceeds the limit.
    pub(super) fn admits(&mut self, topics: usize) -> bool {
        let now = Instant::now();
        if self.since.is_none_or(|since| now - since >= WINDOW) {
            *self = Self {
                since: Some(now),
                items: 0,
            };
        }
        self.items = self.items.saturating_add(1 + topics);
        self.items <= ITEMS_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_window_later_a_client_may_speak_again() {
        let mut rate = Rate::default();
        assert!((0..ITEMS_MAX / 10).all(|_| rate.admits(9)));
        assert!(!rate.admits(0));
        tokio::time::advance(WINDOW).await;
        assert!(rate.admits(9));
    }
}
