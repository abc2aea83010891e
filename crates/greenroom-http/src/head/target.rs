use bytes::Bytes;
use http::{Method, Uri};

use super::{host, uri_from};
use crate::Reason;

/// The target in one of its four forms (RFC 9112, 3.2): origin, absolute (`http` and `https`),
/// asterisk with `OPTIONS`, and authority with `CONNECT`, which has no other.
pub(super) fn parse(method: &Method, target: Bytes) -> Result<Uri, Reason> {
    if *method == Method::CONNECT {
        return authority(target);
    }
    if !is_plain(&target) {
        return Err(Reason::Target);
    }
    if target == b"*".as_slice() && *method != Method::OPTIONS {
        return Err(Reason::Target);
    }
    let without_authority = target.starts_with(b"/") || target == b"*".as_slice();
    let uri = uri_from(target)?;
    if without_authority || is_absolute(&uri) {
        return Ok(uri);
    }
    Err(Reason::Target)
}

/// `uri-host ":" port` (RFC 9112, 3.2.3).
fn authority(target: Bytes) -> Result<Uri, Reason> {
    if host::is_well_formed(&target) && host::has_port(&target) {
        return uri_from(target);
    }
    Err(Reason::Target)
}

/// Whether there is neither a fragment nor a space nor a control character in the target.
///
/// RFC 3986 has text outside ASCII percent-encoded, but many clients send it as it is. No byte of
/// it is one that ends a target, a line or a field, so nobody finds another end of the message.
/// It must be UTF-8, and no control character either (U+0080 to U+009F).
fn is_plain(target: &[u8]) -> bool {
    let ascii = |byte: &u8| (0x21..0x7f).contains(byte) && *byte != b'#';
    if target.iter().all(ascii) {
        return true;
    }
    let plain = |letter: char| !letter.is_control() && letter != '#' && letter != ' ';
    std::str::from_utf8(target).is_ok_and(|text| text.chars().all(plain))
}

fn is_absolute(uri: &Uri) -> bool {
    let web = matches!(uri.scheme_str(), Some("http" | "https"));
    let authority = uri.authority().map(http::uri::Authority::as_str);
    web && authority.is_some_and(|name| host::is_well_formed(name.as_bytes()))
}
