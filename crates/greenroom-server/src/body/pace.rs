use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The pace of a request's body, which its client must keep by default until the response begins
/// (see [`Limits::body_rate_min`](crate::Limits)). Found in the extensions of each request whose
/// body is still to be received.
///
/// A route whose clients may take any time, because it takes a stream of messages for hours, say,
/// and responds at its end, lifts the limit before it reads the body. Such a request holds a
/// connection, and whatever its handler holds, for as long as its client likes.
#[derive(Clone, Debug, Default)]
pub struct BodyPace(Arc<AtomicBool>);

impl BodyPace {
    /// Lets the client take any time for the rest of the body.
    pub fn lift(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns `true` if the client may take any time.
    #[must_use]
    pub fn is_lifted(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
