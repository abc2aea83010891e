use axum::extract::DefaultBodyLimit;
use bytesize::ByteSize;
use tower_http::limit::RequestBodyLimitLayer;

/// Lets bodies of at most these many bytes to the routes behind it; longer ones are answered with 413,
/// where their length is told before anything of them is read. Extractors have no limit of their own.
pub(crate) fn body_limit(bytes_max: ByteSize) -> (RequestBodyLimitLayer, DefaultBodyLimit) {
    let bytes_max = usize::try_from(bytes_max.as_u64()).unwrap_or(usize::MAX);
    let limit = RequestBodyLimitLayer::new(bytes_max);
    (limit, DefaultBodyLimit::disable())
}
