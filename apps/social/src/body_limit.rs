use axum::extract::DefaultBodyLimit;
use bytesize::ByteSize;
use tower_http::limit::RequestBodyLimitLayer;

/// Limits the bodies of the routes behind it to `bytes_max`; longer ones get 413, before anything
/// is read if `Content-Length` says so.
///
/// The extractors' own limit is disabled.
pub(crate) fn body_limit(bytes_max: ByteSize) -> (RequestBodyLimitLayer, DefaultBodyLimit) {
    let bytes_max = usize::try_from(bytes_max.as_u64()).unwrap_or(usize::MAX);
    let limit = RequestBodyLimitLayer::new(bytes_max);
    (limit, DefaultBodyLimit::disable())
}
