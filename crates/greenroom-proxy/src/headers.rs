//! The header fields that go on, those that end here, and those that tell of the client.

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};

use axum::extract::ConnectInfo;
use greenroom_server::ForwardedFor;
use greenroom_stage::Client;
use http::header::{
    CONNECTION, CONTENT_LENGTH, COOKIE, FORWARDED, HOST, HeaderName, PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION, TE, TRANSFER_ENCODING, UPGRADE, VIA,
};
use http::request::Parts;
use http::uri::Scheme;
use http::{HeaderMap, HeaderValue, Version};

use crate::settings::ForwardedFields;

/// Most proxies that a request may have passed: beyond it, it goes round.
const HOPS_MAX: usize = 32;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

/// Fields by which a proxy tells of its client.
const OF_PROXIES: [HeaderName; 9] = [
    FORWARDED,
    FORWARDED_FOR,
    FORWARDED_PROTO,
    FORWARDED_HOST,
    HeaderName::from_static("x-forwarded-port"),
    HeaderName::from_static("x-forwarded-prefix"),
    HeaderName::from_static("x-forwarded-server"),
    HeaderName::from_static("x-forwarded-ssl"),
    HeaderName::from_static("x-real-ip"),
];

/// Fields that concern one connection only (RFC 9110, 7.6.1), beside those that `Connection` names.
const OF_CONNECTION: [HeaderName; 9] = [
    CONNECTION,
    HeaderName::from_static("http2-settings"),
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Joins cookies that came as several fields, as they do by HTTP/2 and HTTP/3: HTTP/1.1 has one
/// field of them (RFC 9113, 8.2.3).
pub(crate) fn join_cookies(headers: &mut HeaderMap) {
    let cookies: Vec<_> = headers.get_all(COOKIE).iter().collect();
    if cookies.len() < 2 {
        return;
    }
    let cookies: Vec<_> = cookies.into_iter().map(HeaderValue::as_bytes).collect();
    // Of values, with a separator of plain characters: it is one.
    if let Ok(joined) = HeaderValue::from_bytes(&cookies.join(&b"; "[..])) {
        headers.insert(COOKIE, joined);
    }
}

/// The values of a proxy's `Via`, which names the protocol that a request came by (RFC 9110,
/// 7.6.3), not that of the upstream.
pub(crate) struct Via {
    http10: HeaderValue,
    http11: HeaderValue,
    http2: HeaderValue,
    http3: HeaderValue,
}

impl Via {
    pub(crate) fn new(pseudonym: &str) -> Self {
        let value = |version: &str| {
            let value = HeaderValue::try_from(format!("{version} {pseudonym}"));
            value.unwrap_or(HeaderValue::from_static("1.1 greenroom"))
        };
        Self {
            http10: value("1.0"),
            http11: value("1.1"),
            http2: value("2"),
            http3: value("3"),
        }
    }

    /// Returns the value for a request that came by this version.
    pub(crate) fn of(&self, version: Version) -> &HeaderValue {
        match version {
            Version::HTTP_10 => &self.http10,
            Version::HTTP_2 => &self.http2,
            Version::HTTP_3 => &self.http3,
            _ => &self.http11,
        }
    }
}

/// The sender of a request, as upstreams are told.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    client: Option<ForwardedFor>,
    /// A trusted proxy sent it, whose word counts.
    is_trusted: bool,
    scheme: Scheme,
}

impl Origin {
    /// Returns the origin of the request that has these extensions; `current` is the client that
    /// the calling thread works for.
    pub(crate) fn of(parts: &Parts, current: Client) -> Self {
        let forwarded = parts.extensions.get::<ForwardedFor>().copied();
        let connected = || {
            let ConnectInfo(peer) = parts.extensions.get::<ConnectInfo<SocketAddr>>()?;
            // Axum's stand-in for the address of a client on a Unix socket.
            (!peer.ip().is_unspecified()).then_some(*peer)
        };
        let sender = || current.sender().or_else(connected).map(ForwardedFor::from);
        let scheme = parts.extensions.get::<Scheme>().cloned();
        Self {
            client: forwarded.or_else(sender),
            is_trusted: forwarded.is_some(),
            scheme: scheme.unwrap_or(Scheme::HTTP),
        }
    }

    /// Replaces the fields that tell of the client; `host` is the one that it asked for.
    pub(crate) fn tell(
        &self,
        headers: &mut HeaderMap,
        fields: ForwardedFields,
        host: Option<&HeaderValue>,
    ) {
        let said = |name: HeaderName| headers.get(name).filter(|_| self.is_trusted).cloned();
        let scheme = HeaderValue::from_str(self.scheme.as_str()).ok();
        let scheme = said(FORWARDED_PROTO).or(scheme);
        let host = said(FORWARDED_HOST).or_else(|| host.cloned());
        remove_of_proxies(headers);
        let (x, standard) = match fields {
            ForwardedFields::XForwarded => (true, false),
            ForwardedFields::Forwarded => (false, true),
            ForwardedFields::Both => (true, true),
            ForwardedFields::None => (false, false),
        };
        if standard && let Some(value) = self.forwarded(scheme.as_ref(), host.as_ref()) {
            headers.insert(FORWARDED, value);
        }
        if x {
            let client = self.client.map(|client| client.ip.to_string());
            let client = client.and_then(|client| HeaderValue::try_from(client).ok());
            let told = [
                (FORWARDED_FOR, client),
                (FORWARDED_PROTO, scheme),
                (FORWARDED_HOST, host),
            ];
            for (name, value) in told {
                if let Some(value) = value {
                    headers.insert(name, value);
                }
            }
        }
    }

    /// Returns the value of `Forwarded` (RFC 7239, 4).
    fn forwarded(
        &self,
        scheme: Option<&HeaderValue>,
        host: Option<&HeaderValue>,
    ) -> Option<HeaderValue> {
        let mut value = match self.client.map(|client| (client.ip, client.port)) {
            None => "for=unknown".to_owned(),
            Some((IpAddr::V4(ip), None)) => format!("for={ip}"),
            Some((IpAddr::V6(ip), None)) => format!("for=\"[{ip}]\""),
            Some((ip, Some(port))) => format!("for=\"{}\"", SocketAddr::new(ip, port)),
        };
        // What would have to be escaped is no host and no scheme.
        let plain = |value: &HeaderValue| {
            let text = value.to_str().ok()?;
            (!text.contains(['"', '\\'])).then(|| text.to_owned())
        };
        for (name, told) in [("host", host), ("proto", scheme)] {
            if let Some(told) = told.and_then(plain) {
                // Writing to a string cannot fail.
                let _ = write!(value, ";{name}=\"{told}\"");
            }
        }
        HeaderValue::try_from(value).ok()
    }
}

/// Removes the fields by which a proxy tells of its client, also where a name has `_` for `-`: an
/// upstream that knows fields as CGI has them (`HTTP_X_REAL_IP`) cannot tell the two apart.
fn remove_of_proxies(headers: &mut HeaderMap) {
    for name in OF_PROXIES {
        headers.remove(name);
    }
    let is_twin = |name: &&HeaderName| {
        let name = name.as_str();
        name.contains('_')
            && OF_PROXIES
                .iter()
                .any(|of| name.replace('_', "-") == of.as_str())
    };
    let twins: Vec<_> = headers.keys().filter(is_twin).cloned().collect();
    for name in twins {
        headers.remove(name);
    }
}

/// Removes the fields that concern one connection only, and those that frame the message: the
/// connections frame by themselves. `Content-Length` is left.
pub(crate) fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<_> = tokens(headers, &CONNECTION)
        .filter_map(|name| HeaderName::try_from(name).ok())
        // They are not the sender's to remove.
        .filter(|name| *name != CONTENT_LENGTH && *name != HOST)
        .collect();
    for name in OF_CONNECTION.iter().chain(&named) {
        headers.remove(name);
    }
}

/// Returns the members of a list of tokens.
pub(crate) fn tokens<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> impl Iterator<Item = &'a str> {
    let values = headers.get_all(name).into_iter();
    let values = values.filter_map(|value| value.to_str().ok());
    let tokens = values.flat_map(|value| value.split(','));
    tokens.map(str::trim).filter(|token| !token.is_empty())
}

/// Returns `true` if a list of tokens has this one.
pub(crate) fn has_token(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    tokens(headers, name).any(|has| has.eq_ignore_ascii_case(token))
}

/// Returns `true` if a request has been here before, or has gone through too many proxies.
pub(crate) fn goes_round(headers: &HeaderMap, pseudonym: &str) -> bool {
    let is_here = |via: &str| via.split_ascii_whitespace().nth(1) == Some(pseudonym);
    let mut hops = 0;
    tokens(headers, &VIA).any(|via| {
        hops += 1;
        hops > HOPS_MAX || is_here(via)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(client: Option<&str>, is_trusted: bool) -> Origin {
        let socket = |text: &str| ForwardedFor::from(text.parse::<SocketAddr>().expect("a socket"));
        Origin {
            client: client.map(socket),
            is_trusted,
            scheme: Scheme::HTTP,
        }
    }

    fn told(origin: &Origin, fields: ForwardedFields, sent: &[(&'static str, &str)]) -> String {
        let mut headers = HeaderMap::new();
        for (name, value) in sent {
            headers.append(*name, value.parse().expect("a value"));
        }
        let host = HeaderValue::from_static("example.org:80");
        origin.tell(&mut headers, fields, Some(&host));
        let mut lines: Vec<_> = headers
            .iter()
            .map(|(name, value)| format!("{name}: {}", value.to_str().expect("text")))
            .collect();
        lines.sort();
        lines.join("\n")
    }

    const INVENTED: [(&str, &str); 7] = [
        ("x-forwarded-for", "198.51.100.1"),
        ("x-forwarded-for", "198.51.100.2"),
        ("x-forwarded-proto", "https"),
        ("forwarded", "for=198.51.100.1"),
        ("x-real-ip", "198.51.100.1"),
        ("x_real_ip", "198.51.100.1"),
        ("x-forwarded_for", "198.51.100.1"),
    ];

    #[test]
    fn what_a_client_says_of_itself_is_dropped() {
        let origin = origin(Some("203.0.113.7:4711"), false);
        assert_eq!(
            told(&origin, ForwardedFields::XForwarded, &INVENTED),
            "x-forwarded-for: 203.0.113.7\nx-forwarded-host: example.org:80\n\
             x-forwarded-proto: http"
        );
        assert_eq!(
            told(&origin, ForwardedFields::Forwarded, &INVENTED),
            "forwarded: for=\"203.0.113.7:4711\";host=\"example.org:80\";proto=\"http\""
        );
        assert_eq!(told(&origin, ForwardedFields::None, &INVENTED), "");
        let both = told(&origin, ForwardedFields::Both, &INVENTED);
        assert_eq!(both.lines().count(), 4, "{both}");
    }

    #[test]
    fn a_trusted_proxy_is_believed_the_scheme() {
        let origin = origin(Some("203.0.113.7:4711"), true);
        let told = told(&origin, ForwardedFields::XForwarded, &INVENTED);
        assert!(told.contains("x-forwarded-for: 203.0.113.7\n"), "{told}");
        assert!(told.contains("x-forwarded-proto: https"), "{told}");
    }

    #[test]
    fn rfc7239_6_addresses_of_ipv6_and_unknown_ones() {
        let v6 = origin(Some("[2001:db8::1]:80"), false);
        let v6 = told(&v6, ForwardedFields::Forwarded, &[]);
        assert!(v6.contains("for=\"[2001:db8::1]:80\""), "{v6}");
        let nobody = told(&origin(None, false), ForwardedFields::Both, &INVENTED);
        assert!(nobody.contains("for=unknown"), "{nobody}");
        assert!(!nobody.contains("x-forwarded-for"), "{nobody}");
    }

    #[test]
    fn rfc9110_7_6_1_fields_that_connection_names_end_here() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "keep-alive, X-Mine"),
            ("connection", "te , host, content-length,, \u{7f}"),
            ("x-mine", "1"),
            ("keep-alive", "timeout=5"),
            ("te", "gzip"),
            ("upgrade", "h2c"),
            ("host", "example.org"),
            ("content-length", "3"),
            ("x_other", "1"),
        ] {
            if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
                headers.append(name, value);
            }
        }
        headers.append(
            "connection",
            HeaderValue::from_static("host, content-length"),
        );
        remove_hop_by_hop(&mut headers);
        let mut left: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["content-length", "host", "x_other"]);
    }

    #[test]
    fn rfc9110_7_6_3_via_names_the_protocol_that_was_received() {
        let via = Via::new("greenroom-1");
        for (version, expected) in [
            (Version::HTTP_10, "1.0 greenroom-1"),
            (Version::HTTP_11, "1.1 greenroom-1"),
            (Version::HTTP_2, "2 greenroom-1"),
            (Version::HTTP_3, "3 greenroom-1"),
        ] {
            let value = via.of(version);
            assert_eq!(value, expected);
            let headers = HeaderMap::from_iter([(VIA, value.clone())]);
            assert!(goes_round(&headers, "greenroom-1"), "{expected}");
        }
    }

    #[test]
    fn requests_that_come_round_again_are_seen() {
        let via = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(VIA, value.parse().expect("a value"));
            }
            goes_round(&headers, "greenroom-1")
        };
        assert!(!via(&[]));
        assert!(!via(&[
            "1.1 greenroom-12, 1.0 other",
            "2.0 nginx (greenroom-1)"
        ]));
        assert!(via(&["1.1 other, 1.1 greenroom-1 (it)"]));
        assert!(!via(&["1.1 a"; HOPS_MAX]));
        assert!(via(&["1.1 a"; HOPS_MAX + 1]));
    }
}
