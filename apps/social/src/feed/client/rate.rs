use std::time::Duration;

use tokio::time::Instant;

/// Messages that a client may send within [`WINDOW`], and topics that it may name in them, together.
const WORDS_MAX: usize = 1_000;
const WINDOW: Duration = Duration::from_secs(10);

/// How much a client says.
#[derive(Debug, Default)]
pub(super) struct Rate {
    since: Option<Instant>,
    words: usize,
}

impl Rate {
    /// Counts a message that asks for so many topics; false if that is too much.
    pub(super) fn admits(&mut self, topics: usize) -> bool {
        let now = Instant::now();
        if self.since.is_none_or(|since| now - since >= WINDOW) {
            *self = Self {
                since: Some(now),
                words: 0,
            };
        }
        self.words = self.words.saturating_add(1 + topics);
        self.words <= WORDS_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_window_later_a_client_may_speak_again() {
        let mut rate = Rate::default();
        assert!((0..WORDS_MAX / 10).all(|_| rate.admits(9)));
        assert!(!rate.admits(0));
        tokio::time::advance(WINDOW).await;
        assert!(rate.admits(9));
    }
}
