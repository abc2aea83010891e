//! The header fields in which a proxy names the sender of a request. Sources: RFC 7239, sections 4
//! and 6, and for `X-Forwarded-For` what proxies in use do.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str;

use http::header::{FORWARDED, HeaderMap, HeaderName};

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The header field in which trusted proxies name their clients. The other one is never read: a
/// proxy passes on unseen what it does not write itself, so there every client could write what it
/// likes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForwardedHeader {
    /// `Forwarded`, by its parameter `for` (RFC 7239).
    Forwarded,
    /// `X-Forwarded-For`, which most proxies write.
    #[default]
    XForwardedFor,
}

/// The client of a request that came by a trusted proxy, as the proxies tell it. The server puts it
/// into the extensions of such a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ForwardedFor {
    /// Its address. One of IPv4 that was mapped to IPv6 is of IPv4 again.
    pub ip: IpAddr,
    /// Its port, if the proxy tells it.
    pub port: Option<u16>,
}

impl ForwardedHeader {
    /// Returns the client that each proxy saw, the one that is next to the server first. `None`
    /// stands for an entry that is no address: hidden (`unknown`, `_name`) or malformed.
    pub(super) fn entries(
        self,
        headers: &HeaderMap,
    ) -> impl Iterator<Item = Option<ForwardedFor>> + '_ {
        type Read = fn(&str) -> Option<ForwardedFor>;
        let (name, read): (_, Read) = match self {
            Self::Forwarded => (FORWARDED, node_of_element),
            Self::XForwardedFor => (X_FORWARDED_FOR, node),
        };
        let lines = headers.get_all(name).iter().rev();
        let elements = lines.flat_map(|line| FromEnd::new(line.as_bytes(), b','));
        // RFC 9110, 5.6.1.2: an empty element of a list is none.
        let elements = elements.filter(|element| !element.is_empty());
        elements.map(move |element| read(str::from_utf8(element).ok()?))
    }
}

/// The parts of a text between these separators, the last one first, without the blanks around
/// them. A separator within quotes is none.
///
/// They are read from the end because there stands what the nearest proxy has added. Read from its
/// beginning, a quote that the client never closed would swallow it.
struct FromEnd<'a> {
    rest: Option<&'a [u8]>,
    separator: u8,
}

impl<'a> FromEnd<'a> {
    fn new(text: &'a [u8], separator: u8) -> Self {
        Self {
            rest: Some(text),
            separator,
        }
    }
}

impl<'a> Iterator for FromEnd<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let text = self.rest.take()?;
        let mut is_quoted = false;
        for (at, &byte) in text.iter().enumerate().rev() {
            if byte == b'"' && !(is_quoted && is_escaped(text, at)) {
                is_quoted = !is_quoted;
            } else if byte == self.separator && !is_quoted {
                self.rest = Some(&text[..at]);
                return Some(text[at + 1..].trim_ascii());
            }
        }
        Some(text.trim_ascii())
    }
}

/// Returns `true` if an odd number of backslashes stands before this place.
fn is_escaped(text: &[u8], at: usize) -> bool {
    let before = text[..at].iter().rev();
    before.take_while(|&&byte| byte == b'\\').count() % 2 == 1
}

/// The node that an element of `Forwarded` says the request is for.
fn node_of_element(element: &str) -> Option<ForwardedFor> {
    let mut found = None;
    for pair in FromEnd::new(element.as_bytes(), b';') {
        if pair.is_empty() {
            continue;
        }
        let (name, value) = str::from_utf8(pair).ok()?.split_once('=')?;
        // RFC 7239, 4: no parameter occurs twice in an element.
        if name.eq_ignore_ascii_case("for") && found.replace(value).is_some() {
            return None;
        }
    }
    node(unquoted(found?)?)
}

/// No address needs an escape, so a text with one is none.
fn unquoted(value: &str) -> Option<&str> {
    let Some(rest) = value.strip_prefix('"') else {
        return Some(value);
    };
    let inner = rest.strip_suffix('"')?;
    (!inner.contains(['"', '\\'])).then_some(inner)
}

/// Reads an address with or without a port. IPv6 stands in brackets, and without a port may do
/// without.
fn node(text: &str) -> Option<ForwardedFor> {
    if let Ok(ip) = text.parse::<IpAddr>() {
        return Some(ForwardedFor::new(ip, None));
    }
    let (ip, behind) = if let Some(text) = text.strip_prefix('[') {
        let (ip, behind) = text.split_once(']')?;
        (IpAddr::V6(ip.parse::<Ipv6Addr>().ok()?), behind)
    } else {
        let (ip, _) = text.split_once(':')?;
        (IpAddr::V4(ip.parse::<Ipv4Addr>().ok()?), &text[ip.len()..])
    };
    let port = match behind.strip_prefix(':') {
        None if behind.is_empty() => None,
        None => return None,
        // RFC 7239, 6.3: a hidden port.
        Some(port) if port.len() > 1 && port.starts_with('_') => None,
        Some(port) if port.starts_with('+') => return None,
        Some(port) => Some(port.parse().ok()?),
    };
    Some(ForwardedFor::new(ip, port))
}

impl ForwardedFor {
    pub(crate) fn new(ip: IpAddr, port: Option<u16>) -> Self {
        Self {
            ip: ip.to_canonical(),
            port,
        }
    }
}

impl From<SocketAddr> for ForwardedFor {
    fn from(peer: SocketAddr) -> Self {
        Self::new(peer.ip(), Some(peer.port()))
    }
}

impl fmt::Display for ForwardedFor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            Some(port) => SocketAddr::new(self.ip, port).fmt(out),
            None => self.ip.fmt(out),
        }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn entries(header: ForwardedHeader, lines: &[&[u8]]) -> Vec<String> {
        let mut headers = HeaderMap::new();
        for line in lines {
            for name in [FORWARDED, X_FORWARDED_FOR] {
                let line = HeaderValue::from_bytes(line).expect("a line of a header");
                headers.append(name, line);
            }
        }
        let read = header.entries(&headers);
        let shown = read.map(|entry| entry.map_or("none".to_owned(), |node| node.to_string()));
        shown.collect()
    }

    #[test]
    fn entries_of_x_forwarded_for_are_read_from_the_end() {
        let cases: &[(&[&[u8]], &[&str])] = &[
            (&[], &[]),
            (&[b"203.0.113.7"], &["203.0.113.7"]),
            (&[b"192.0.2.1,203.0.113.7"], &["203.0.113.7", "192.0.2.1"]),
            (
                &[b"192.0.2.1", b"192.0.2.2 ,\t192.0.2.3"],
                &["192.0.2.3", "192.0.2.2", "192.0.2.1"],
            ),
            (&[b" , 192.0.2.1,, "], &["192.0.2.1"]),
            (&[b"192.0.2.1:4711"], &["192.0.2.1:4711"]),
            (&[b"192.0.2.1:_hidden"], &["192.0.2.1"]),
            (&[b"2001:db8::1"], &["2001:db8::1"]),
            (&[b"[2001:db8::1]"], &["2001:db8::1"]),
            (&[b"[2001:db8::1]:80"], &["[2001:db8::1]:80"]),
            (&[b"::ffff:192.0.2.1"], &["192.0.2.1"]),
            (&[b"[::ffff:192.0.2.1]:80"], &["192.0.2.1:80"]),
            (&[b"192.0.2.1, unknown"], &["none", "192.0.2.1"]),
            (&[b"_hidden"], &["none"]),
            (&[b"evil\", 192.0.2.1"], &["192.0.2.1", "none"]),
        ];
        for (lines, expected) in cases {
            assert_eq!(
                &entries(ForwardedHeader::XForwardedFor, lines),
                expected,
                "{lines:?}"
            );
        }
    }

    #[test]
    fn entries_of_forwarded_are_read_from_the_end() {
        let cases: &[(&[&[u8]], &[&str])] = &[
            (&[b"for=192.0.2.1"], &["192.0.2.1"]),
            (
                &[b"for=192.0.2.1;proto=http;by=203.0.113.43"],
                &["192.0.2.1"],
            ),
            (
                &[b"by=_me; For=\"192.0.2.1:47\" ;;host=a"],
                &["192.0.2.1:47"],
            ),
            (
                &[b"for=192.0.2.1, for=\"[2001:db8::17]:4711\""],
                &["[2001:db8::17]:4711", "192.0.2.1"],
            ),
            (
                &[b"for=192.0.2.1", b"for=192.0.2.2"],
                &["192.0.2.2", "192.0.2.1"],
            ),
            (&[b"for=\"[2001:db8::17]\""], &["2001:db8::17"]),
            (
                &[b"for=\"_a,b;c\\\"d\";by=192.0.2.9, for=192.0.2.1"],
                &["192.0.2.1", "none"],
            ),
            (&[b"for=unknown"], &["none"]),
            (&[b"for=_SEVKISEK"], &["none"]),
            (&[b"for=\"192.0.2.1:_port\""], &["192.0.2.1"]),
            (&[b"proto=https"], &["none"]),
            (&[b"for=192.0.2.1;for=192.0.2.2"], &["none"]),
            (&[b"192.0.2.1"], &["none"]),
            (&[b"for=\"192.0.2.\\1\""], &["none"]),
            // A quote that a client left open does not swallow what the proxy has added behind it.
            (&[b"for=\"evil, for=192.0.2.1"], &["192.0.2.1", "none"]),
            (
                &[b"for=\"evil, for=\"[2001:db8::1]\""],
                &["2001:db8::1", "none"],
            ),
        ];
        for (lines, expected) in cases {
            assert_eq!(
                &entries(ForwardedHeader::Forwarded, lines),
                expected,
                "{lines:?}"
            );
        }
    }

    #[test]
    fn what_is_no_address_is_none() {
        for text in [
            "",
            "x",
            "192.0.2",
            "192.0.2.256",
            "192.0.2.01",
            "192.0.2.1:",
            "192.0.2.1:65536",
            "192.0.2.1:+80",
            "192.0.2.1:_",
            "192.0.2.1 ",
            "192.0.2.1/8",
            "2001:db8::1:",
            "[::1",
            "[::1]80",
            "[::1]:",
            "[192.0.2.1]",
            "fe80::1%eth0",
            "[fe80::1%1]:80",
            "\"192.0.2.1\"",
        ] {
            assert_eq!(node(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_line_is_read_to_its_end(line: Vec<u8>) {
            if let Ok(line) = HeaderValue::from_bytes(&line) {
                let mut headers = HeaderMap::new();
                headers.insert(FORWARDED, line.clone());
                headers.insert(X_FORWARDED_FOR, line);
                ForwardedHeader::Forwarded.entries(&headers).for_each(drop);
                ForwardedHeader::XForwardedFor.entries(&headers).for_each(drop);
            }
        }
    }
}
