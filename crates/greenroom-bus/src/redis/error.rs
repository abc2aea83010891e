use redis::RedisError;

/// The reason for which a connection could not be made, or ended.
#[derive(Debug, thiserror::Error)]
pub(super) enum LinkError {
    #[error("the server closed the connection")]
    Closed,
    #[error("the server ended a subscription: its slot moves to another server of the cluster")]
    Moved,
    #[error("the server's replies do not fit the commands")]
    OutOfStep,
    #[error(transparent)]
    Redis(#[from] RedisError),
}
