use bytes::Bytes;
use http::{Method, Uri};

use super::{host, uri_from};
use crate::Reason;

/// The target in one of the forms that an origin server answers (RFC 9112, 3.2): origin,
/// absolute (`http` and `https`), or asterisk with `OPTIONS`.
pub(super) fn parse(method: &Method, target: Bytes) -> Result<Uri, Reason> {
    if *method == Method::CONNECT {
        return Err(Reason::Connect);
    }
    let plain = |byte: &u8| (0x21..0x7f).contains(byte) && *byte != b'#';
    if !target.iter().all(plain) {
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

fn is_absolute(uri: &Uri) -> bool {
    let web = matches!(uri.scheme_str(), Some("http" | "https"));
    let authority = uri.authority().map(http::uri::Authority::as_str);
    web && authority.is_some_and(|name| host::is_well_formed(name.as_bytes()))
}
