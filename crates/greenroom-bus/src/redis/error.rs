use redis::RedisError;

/// Why a connection could not be made, or ended.
#[derive(Debug, thiserror::Error)]
pub(super) enum LinkError {
    #[error("the server closed the connection")]
    Closed,
    #[error(transparent)]
    Redis(#[from] RedisError),
}
