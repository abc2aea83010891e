use std::net::Ipv6Addr;

/// Returns `true` if `value` is `uri-host [ ":" port ]` with a host that is not empty (RFC 9110,
/// 7.2; RFC 3986, 3.2.2). User information is not allowed, and neither is a comma: RFC 3986 has it
/// in names, but no real name has one, and a party that joins two fields into a list makes one.
pub(super) fn is_well_formed(value: &[u8]) -> bool {
    if let Some(rest) = value.strip_prefix(b"[") {
        return is_literal(rest);
    }
    let is_name_byte = |byte: &u8| NAME_BYTES[usize::from(*byte)];
    let end = value.iter().position(|byte| !is_name_byte(byte));
    let (name, port) = value.split_at(end.unwrap_or(value.len()));
    !name.is_empty() && is_port(port)
}

/// Checks the rest of an IPv6 literal after its opening bracket.
fn is_literal(rest: &[u8]) -> bool {
    let Some(end) = memchr::memchr(b']', rest) else {
        return false;
    };
    let address = std::str::from_utf8(&rest[..end]).ok();
    address.is_some_and(|text| text.parse::<Ipv6Addr>().is_ok()) && is_port(&rest[end + 1..])
}

/// Checks for nothing, or a colon and a port of up to five digits; the grammar allows a colon
/// alone.
fn is_port(port: &[u8]) -> bool {
    match port {
        [] => true,
        [b':', digits @ ..] => digits.len() <= 5 && digits.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

/// Returns `true` if a well-formed host names a port behind its colon.
pub(super) fn has_port(host: &[u8]) -> bool {
    let colon = host.iter().rposition(|&byte| byte == b':');
    let port = colon.map_or(&b""[..], |at| &host[at + 1..]);
    !port.is_empty() && port.iter().all(u8::is_ascii_digit)
}

/// The bytes of a `reg-name`: unreserved, sub-delims but for the comma, and the percent sign of an
/// encoded byte.
static NAME_BYTES: [bool; 256] = {
    let mut allowed = [false; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        allowed[byte as usize] = byte.is_ascii_alphanumeric();
        byte += 1;
    }
    let mut others = b"-._~!$&'()*+;=%".as_slice();
    while let [first, rest @ ..] = others {
        allowed[*first as usize] = true;
        others = rest;
    }
    allowed
};

/// Returns `true` if the authority of an absolute-form target, or of HTTP/2's `:authority`, names
/// the same server as `Host`. The scheme's default port is optional in either.
pub(super) fn agrees(host: &[u8], scheme: &str, authority: &str) -> bool {
    let default_port: &[u8] = if scheme == "https" { b":443" } else { b":80" };
    let bare = |name: &'_ [u8]| -> Vec<u8> {
        name.strip_suffix(default_port)
            .or_else(|| name.strip_suffix(b":"))
            .unwrap_or(name)
            .to_ascii_lowercase()
    };
    bare(host) == bare(authority.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc9110_7_2_hosts() {
        for good in [
            "a",
            "example.org",
            "example.org:80",
            "127.0.0.1:5000",
            "[::1]",
            "[::1]:80",
            "a:",
            "a_b",
            "xn--a",
        ] {
            assert!(is_well_formed(good.as_bytes()), "{good}");
        }
        for bad in [
            "",
            ":80",
            "a b",
            "a/b",
            "u@h",
            "a,b",
            "a:b",
            "a:123456",
            "[::1",
            "[::1]x",
            "[fe80::1%eth0]",
            "a\"",
            "h?q",
        ] {
            let wrong = is_well_formed(bad.as_bytes());
            assert!(!wrong, "{bad}");
        }
    }

    #[test]
    fn rfc9112_3_2_3_ports() {
        for with in ["a:80", "[::1]:80", "127.0.0.1:0"] {
            assert!(has_port(with.as_bytes()), "{with}");
        }
        for without in ["a", "a:", "80", "[::1]", "127.0.0.1"] {
            assert!(!has_port(without.as_bytes()), "{without}");
        }
    }

    #[test]
    fn rfc9112_3_2_2_agreement_ignores_case_and_default_port() {
        assert!(agrees(b"Example.org", "http", "example.ORG:80"));
        assert!(agrees(b"example.org:443", "https", "example.org"));
        assert!(!agrees(b"example.org:443", "http", "example.org"));
        assert!(!agrees(b"example.org", "http", "example.com"));
    }
}
