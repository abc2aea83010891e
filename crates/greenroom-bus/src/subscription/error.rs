use std::sync::Arc;

/// The reason for which a subscription has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The last clone of the [`Bus`](crate::Bus) was dropped.
    BusDropped,
    /// Its queue was full, and it has [`Overflow::Close`](crate::Overflow::Close).
    Overflow,
    /// Its sink returned [`SinkError::Closed`](crate::SinkError::Closed), or panicked.
    SinkClosed,
}

/// A subscription that is not active at the server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EstablishError {
    /// The subscription has ended.
    #[error("the subscription has ended")]
    Ended,
    /// The server refused it: for want of rights, or because another node of a cluster is
    /// responsible. It is requested again after the next connection.
    #[error("the server refused the subscription: {reason}")]
    Refused {
        /// The server's own words.
        reason: Arc<str>,
    },
}
