use http::StatusCode;

/// A message that is not served: the client gets [`Rejected::status`] and the connection closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Rejected {
    /// The rule that the message breaks.
    pub reason: Reason,
}

impl Rejected {
    /// Returns the status that the client gets.
    #[must_use]
    pub fn status(self) -> StatusCode {
        self.reason.status()
    }
}

impl From<Reason> for Rejected {
    fn from(reason: Reason) -> Self {
        Self { reason }
    }
}

/// A rule that a message breaks, with the section that states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// A carriage return without its line feed, or a line feed without its carriage return
    /// (RFC 9112, 2.2).
    #[error("bare CR or LF in the message head")]
    BareLineEnd,
    /// A chunk's data is not followed by CR LF (RFC 9112, 7.1).
    #[error("chunk data without its CR LF")]
    ChunkEnd,
    /// Chunk extensions beyond their grammar or limit (RFC 9112, 7.1.1).
    #[error("malformed or oversized chunk extension")]
    ChunkExtension,
    /// A chunk size that is not 1 to 16 hexadecimal digits (RFC 9112, 7.1).
    #[error("malformed chunk size")]
    ChunkSize,
    /// `CONNECT` with a body, which it does not have: what follows belongs to the tunnel (RFC 9110,
    /// 9.3.6).
    #[error("CONNECT with a body")]
    Connect,
    /// A field of connections of HTTP/1.1, over HTTP/3 (RFC 9114, 4.2).
    #[error("a header field of HTTP/1.1 connections")]
    ConnectionField,
    /// `Content-Length` that is not one decimal number (RFC 9110, 8.6).
    #[error("malformed Content-Length")]
    ContentLength,
    /// More than one `Content-Length`, equal or not (RFC 9112, 6.3).
    #[error("repeated Content-Length")]
    ContentLengthRepeated,
    /// `Content-Length` beside `Transfer-Encoding` (RFC 9112, 6.1).
    #[error("Content-Length together with Transfer-Encoding")]
    ContentLengthWithTransferEncoding,
    /// An expectation other than `100-continue` (RFC 9110, 10.1.1).
    #[error("unknown expectation")]
    Expectation,
    /// A malformed field line: whitespace before the colon, a folded line, a control byte or a
    /// character that a name may not have (RFC 9110, 5.1 and 5.5; RFC 9112, 5.1 and 5.2).
    #[error("malformed header field")]
    Field,
    /// A framing field in a trailer section (RFC 9110, 6.5.1).
    #[error("field not allowed in trailers")]
    ForbiddenTrailer,
    /// `Host` empty or not a host with an optional port (RFC 9110, 7.2).
    #[error("malformed Host")]
    Host,
    /// The absolute-form target names another authority than `Host` (RFC 9112, 3.2.2).
    #[error("Host disagrees with the request target")]
    HostDisagrees,
    /// HTTP/1.1 without `Host` (RFC 9112, 3.2).
    #[error("missing Host")]
    HostMissing,
    /// More than one `Host` (RFC 9112, 3.2).
    #[error("repeated Host")]
    HostRepeated,
    /// A method longer than any that is served (RFC 9112, 3).
    #[error("request method too long")]
    MethodTooLong,
    /// A request line that is not `method SP target SP version` (RFC 9112, 3).
    #[error("malformed request line")]
    RequestLine,
    /// A target that is in none of the four forms (RFC 9112, 3.2).
    #[error("malformed request target")]
    Target,
    /// A target over [`Limits::target_bytes_max`](crate::Limits::target_bytes_max).
    #[error("request target too long")]
    TargetTooLong,
    /// A head over [`Limits::head_bytes_max`](crate::Limits::head_bytes_max).
    #[error("request head too large")]
    HeadTooLarge,
    /// More fields than [`Limits::fields_max`](crate::Limits::fields_max).
    #[error("too many header fields")]
    TooManyFields,
    /// A `Transfer-Encoding` that does not end in a single `chunked`, that has an empty member, or
    /// that comes with HTTP/1.0 (RFC 9112, 6.1).
    #[error("malformed Transfer-Encoding")]
    TransferEncoding,
    /// A transfer coding other than `chunked` (RFC 9112, 6.1).
    #[error("unknown transfer coding")]
    TransferCodingUnknown,
    /// A version other than HTTP/1.0 to HTTP/1.9, or one after 1.1 in a request that leaves HTTP.
    /// Versions after 1.1 count as that (RFC 9110, 2.5).
    #[error("unknown HTTP version")]
    Version,
}

impl Reason {
    /// Returns the status of the response to such a message.
    #[must_use]
    pub fn status(self) -> StatusCode {
        match self {
            Self::MethodTooLong | Self::TransferCodingUnknown => StatusCode::NOT_IMPLEMENTED,
            Self::Expectation => StatusCode::EXPECTATION_FAILED,
            Self::TargetTooLong => StatusCode::URI_TOO_LONG,
            Self::HeadTooLarge | Self::TooManyFields => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Self::Version => StatusCode::HTTP_VERSION_NOT_SUPPORTED,
            _ => StatusCode::BAD_REQUEST,
        }
    }
}
