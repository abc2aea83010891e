//! The limits of a response, and the reasons why bytes are none.

/// The most header fields of a response.
pub(super) const FIELDS_MAX: usize = 128;
/// The most bytes of a response's head.
pub(super) const HEAD_BYTES_MAX: usize = 64 * 1024;

/// The reason why bytes are no response.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Malformed {
    #[error("not an HTTP response: {reason}; it begins with {begin:?}")]
    Head { reason: String, begin: String },
    #[error("its head is longer than {HEAD_BYTES_MAX} bytes")]
    HeadTooLong,
    #[error("its status is {0:03}")]
    Status(u16),
    #[error("its Content-Length is {0:?}")]
    Length(String),
    #[error("its chunks are malformed")]
    Chunk,
}
