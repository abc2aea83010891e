use bytes::Bytes;
use http::{Method, Uri};

use super::{host, uri_from};
use crate::Reason;

/// Parses the target in one of its four forms (RFC 9112, 3.2): origin, absolute (`http` and
/// `https`), asterisk with `OPTIONS`, and authority with `CONNECT`, which has no other.
pub(super) fn parse(method: &Method, target: Bytes) -> Result<Uri, Reason> {
    if *method == Method::CONNECT {
        return authority(target);
    }
    let without_authority = check_path(method, &target).is_ok();
    if !without_authority && (!is_plain(&target) || target == b"*".as_slice()) {
        return Err(Reason::Target);
    }
    let uri = uri_from(target)?;
    if without_authority || is_absolute(&uri) {
        return Ok(uri);
    }
    Err(Reason::Target)
}

/// Checks a path with its query, or the asterisk, which only `OPTIONS` may name (RFC 9112, 3.2.1
/// and 3.2.4; RFC 9113, 8.3.1).
pub(super) fn check_path(method: &Method, path: &[u8]) -> Result<(), Reason> {
    let is_path = match path {
        b"*" => *method == Method::OPTIONS,
        path => path.starts_with(b"/") && is_plain(path),
    };
    if is_path { Ok(()) } else { Err(Reason::Target) }
}

/// Parses `uri-host ":" port` (RFC 9112, 3.2.3).
fn authority(target: Bytes) -> Result<Uri, Reason> {
    check_authority(&target, true)?;
    uri_from(target)
}

/// Checks `uri-host [ ":" port ]`, of which `CONNECT` needs the port.
pub(super) fn check_authority(authority: &[u8], needs_port: bool) -> Result<(), Reason> {
    if host::is_well_formed(authority) && (host::has_port(authority) || !needs_port) {
        return Ok(());
    }
    Err(Reason::Target)
}

/// Returns `true` if the target has neither a fragment nor a space nor a control character.
///
/// RFC 3986 has text outside ASCII percent-encoded, but many clients send it as it is. No byte of
/// it is one that ends a target, a line or a field, so no recipient finds another end of the
/// message. It must be UTF-8 without the control characters U+0080 to U+009F.
fn is_plain(target: &[u8]) -> bool {
    if target.iter().all(|byte| PLAIN_BYTES[usize::from(*byte)]) {
        return true;
    }
    let plain = |letter: char| !letter.is_control() && letter != '#' && letter != ' ';
    std::str::from_utf8(target).is_ok_and(|text| text.chars().all(plain))
}

/// The bytes of ASCII that are visible, but for the sign before a fragment.
static PLAIN_BYTES: [bool; 256] = {
    let mut plain = [false; 256];
    let mut byte = 0x21;
    while byte < 0x7f {
        plain[byte] = byte != b'#' as usize;
        byte += 1;
    }
    plain
};

fn is_absolute(uri: &Uri) -> bool {
    let web = matches!(uri.scheme_str(), Some("http" | "https"));
    let authority = uri.authority().map(http::uri::Authority::as_str);
    web && authority.is_some_and(|name| check_authority(name.as_bytes(), false).is_ok())
}
