use http::header::{Entry, HeaderMap, HeaderValue, STRICT_TRANSPORT_SECURITY};

/// A year, the least that browsers' lists of such sites take.
const ONE_YEAR: HeaderValue = HeaderValue::from_static("max-age=31536000");

/// Tells clients to come by `https` only (RFC 6797, 6.1), unless the application says something.
pub(crate) fn be_strict(headers: &mut HeaderMap) {
    if let Entry::Vacant(entry) = headers.entry(STRICT_TRANSPORT_SECURITY) {
        entry.insert(ONE_YEAR);
    }
}
