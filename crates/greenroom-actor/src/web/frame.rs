use axum::body::Bytes;
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes};
use thiserror::Error;

/// A whole message of a WebSocket, be it in one frame or in several. Pings, pongs and close frames
/// are not for actors: the connection replies to them itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// Text.
    Text(Utf8Bytes),
    /// Bytes.
    Binary(Bytes),
}

impl Frame {
    /// Creates a frame of text.
    pub fn text(text: impl Into<Utf8Bytes>) -> Self {
        Self::Text(text.into())
    }

    /// Creates a frame of bytes.
    pub fn binary(bytes: impl Into<Bytes>) -> Self {
        Self::Binary(bytes.into())
    }

    /// Returns the text, if it is text.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text.as_str()),
            Self::Binary(_) => None,
        }
    }
}

impl From<&str> for Frame {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for Frame {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<Bytes> for Frame {
    fn from(bytes: Bytes) -> Self {
        Self::Binary(bytes)
    }
}

impl From<Vec<u8>> for Frame {
    fn from(bytes: Vec<u8>) -> Self {
        Self::binary(bytes)
    }
}

impl From<Frame> for Message {
    fn from(frame: Frame) -> Self {
        match frame {
            Frame::Text(text) => Self::Text(text),
            Frame::Binary(bytes) => Self::Binary(bytes),
        }
    }
}

/// A close frame that must not be sent (RFC 6455, 5.5 and 7.4).
#[derive(Debug, Error)]
pub enum InvalidClose {
    /// The code is not one that a server may send.
    #[error("the close code is {0}; allowed are 1000 to 1003, 1007 to 1014, and 3000 to 4999")]
    Code(u16),
    /// The reason does not fit into a control frame.
    #[error("the reason of the close has {0} bytes; allowed are {REASON_BYTES_MAX}")]
    Reason(usize),
}

/// The longest reason that fits into a control frame beside the code, in bytes.
const REASON_BYTES_MAX: usize = 123;

/// Creates a close frame, if it may be sent.
pub(super) fn close_frame(code: u16, reason: &str) -> Result<CloseFrame, InvalidClose> {
    if !matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999) {
        return Err(InvalidClose::Code(code));
    }
    if reason.len() > REASON_BYTES_MAX {
        return Err(InvalidClose::Reason(reason.len()));
    }
    Ok(CloseFrame {
        code,
        reason: reason.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_close_frame_is_what_the_rfc_allows() {
        for code in [999, 1004, 1005, 1006, 1015, 2999, 5000] {
            let error = close_frame(code, "").expect_err("it is not allowed");
            assert!(error.to_string().contains(&code.to_string()), "{error}");
        }
        for code in [1000, 1001, 1011, 3000, 4999] {
            assert_eq!(close_frame(code, "why").expect("it is allowed").code, code);
        }
        assert!(close_frame(1000, &"x".repeat(123)).is_ok());
        let error = close_frame(1000, &"x".repeat(124)).expect_err("it is too long");
        assert!(error.to_string().contains("124 bytes"), "{error}");
    }
}
