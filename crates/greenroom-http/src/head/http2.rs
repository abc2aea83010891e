use http::header::{CONNECTION, HOST, TE, TRANSFER_ENCODING, UPGRADE};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Version};

use super::{fields, request_line, target};
use crate::{Limits, Reason, Rejected};

/// Checks a request received over HTTP/2 or HTTP/3, already parsed, by the rules for one over
/// HTTP/1.1: limits, target, `Host`, `Content-Length`, `Expect`, `CONNECT`.
///
/// `:authority` must be a host with an optional port (RFC 9113, 8.3.1; RFC 9114, 4.3.1). A `Host`
/// beside it must name the same server and is rewritten to equal it, so that readers of either see
/// one name. `is_extended` marks a `CONNECT` with a `:protocol` (RFC 8441, 4), whose target has a
/// path.
///
/// # Errors
///
/// A [`Rejected`], as of [`Connection::receive`](crate::Connection::receive); its status is the
/// response on the request's stream.
pub fn check_http2<B>(
    request: &mut Request<B>,
    is_extended: bool,
    limits: &Limits,
) -> Result<(), Rejected> {
    check(request, is_extended, limits)?;
    if let Some(authority) = request.uri().authority()
        && request.headers().contains_key(HOST)
    {
        let host = HeaderValue::from_str(authority.as_str()).map_err(|_| Reason::Target)?;
        request.headers_mut().insert(HOST, host);
    }
    Ok(())
}

/// Fields that a request over HTTP/3 must not have (RFC 9114, 4.2). Those who parse HTTP/2 refuse
/// them.
const OF_CONNECTIONS: [HeaderName; 5] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    TRANSFER_ENCODING,
    UPGRADE,
];

fn has_no_connection_fields(headers: &HeaderMap) -> Result<(), Reason> {
    let of_connections = OF_CONNECTIONS.iter().any(|name| headers.contains_key(name));
    let is_other = |value: &HeaderValue| !value.as_bytes().eq_ignore_ascii_case(b"trailers");
    if of_connections || headers.get_all(TE).iter().any(is_other) {
        return Err(Reason::ConnectionField);
    }
    Ok(())
}

fn check<B>(request: &Request<B>, is_extended: bool, limits: &Limits) -> Result<(), Reason> {
    let (method, uri) = (request.method(), request.uri());
    let is_tunnel = *method == Method::CONNECT && !is_extended;
    let path = uri.path_and_query().map(PathAndQuery::as_str);
    let target_bytes = path.map_or(0, str::len);
    request_line::lengths_within(method.as_str().len(), target_bytes, limits)?;
    if request.headers().len() > limits.fields_max {
        return Err(Reason::TooManyFields);
    }
    match uri.authority() {
        Some(authority) => target::check_authority(authority.as_str().as_bytes(), is_tunnel)?,
        None if is_tunnel => return Err(Reason::Target),
        None => {}
    }
    if !is_tunnel {
        target::check_path(method, path.unwrap_or_default().as_bytes())?;
    }
    if request.version() == Version::HTTP_3 {
        has_no_connection_fields(request.headers())?;
    }
    let fields = fields::note_all(request.headers(), request.version())?;
    fields.agree_with(method, uri)
}
