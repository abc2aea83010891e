use http::StatusCode;

/// Bytes of informational responses that may wait to be sent ahead of one response, one
/// informational response more or less: 64 KiB.
pub(crate) const UNSENT_BYTES_MAX: usize = 64 * 1_024;

/// An informational response that was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InformationalError {
    /// The status is not informational, or not the application's to send.
    #[error("{0} is no informational status that an application sends: allowed are 102 to 199")]
    Status(StatusCode),
    /// The response has begun or the request is over; or the request came over HTTP/1.0, over
    /// HTTP/2 or with `Upgrade`, where none can be sent.
    #[error(
        "informational responses are sent ahead of the response to an HTTP/1.1 \
         request that asks for no upgrade"
    )]
    Now,
    /// 64 KiB of them wait: the client reads too slowly, or the handler sends too many at once.
    #[error("more than {UNSENT_BYTES_MAX} bytes of informational responses wait to be sent")]
    TooMuch,
}
