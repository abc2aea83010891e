use std::io;

/// The reason for which a connection could not be made, or ended.
#[derive(Debug, thiserror::Error)]
pub(super) enum LinkError {
    #[error("the server closed the connection")]
    Closed,
    #[error(transparent)]
    Connect(#[from] async_nats::ConnectError),
    #[error("messages came faster than this process took them, and the client dropped some")]
    Overrun,
    #[error("no stream takes the messages at this moment")]
    NoStream,
    #[error("the server lost a message of the stream on its way here")]
    OutOfStep,
    #[error("what takes its messages panicked")]
    Panicked,
    #[error("there is no runtime for the connection: {0}")]
    Runtime(io::Error),
    #[error("the server said: {0}")]
    Server(String),
    #[error("the stream `{stream}` cannot be used: {reason}")]
    Stream { stream: String, reason: String },
    #[error("the server did not reply in time")]
    TimedOut,
    #[error("TLS cannot be used: {0}")]
    Tls(String),
}
