//! The target of requests.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use http::Uri;

use super::Protocol;

/// The most turns that one target may have beside the others.
const WEIGHT_MAX: u32 = 1000;

/// A URL and its weight.
///
/// Written `http://host/path`, or `weight=3 http://host/path` for three turns beside a target's
/// one. Schemes are `http`, `https`, `ws` and `wss`; a path that is left out is `/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Scheme of the URL.
    pub scheme: Scheme,
    /// The address to connect to.
    pub place: Place,
    /// Host and port as the URL gives them, for the `Host` field.
    pub authority: String,
    /// Path and query; at least `/`.
    pub path: String,
    /// Turns, from 1 to 1,000.
    pub weight: u32,
}

/// The address of a connection, before it is resolved.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// A host name or address, and a port.
    Tcp {
        /// Without the brackets of IPv6.
        host: String,
        /// From 1 to 65,535.
        port: u16,
    },
    /// A Unix socket.
    Unix(PathBuf),
}

/// The scheme of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// `http`
    Http,
    /// `https`
    Https,
    /// `ws`
    Ws,
    /// `wss`
    Wss,
}

/// An error in a URL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?}: {reason}")]
pub struct TargetError {
    text: String,
    reason: String,
}

impl Scheme {
    /// Returns the port when the URL names none.
    #[must_use]
    pub fn default_port(self) -> u16 {
        match self {
            Self::Http | Self::Ws => 80,
            Self::Https | Self::Wss => 443,
        }
    }

    /// Returns true for a scheme over TLS.
    #[must_use]
    pub fn is_tls(self) -> bool {
        matches!(self, Self::Https | Self::Wss)
    }

    /// Returns the protocol of this scheme, unless the plan sets HTTP/2.
    #[must_use]
    pub fn protocol(self) -> Protocol {
        match self {
            Self::Http | Self::Https => Protocol::Http1,
            Self::Ws | Self::Wss => Protocol::WebSocket,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
            Self::Ws => "ws",
            Self::Wss => "wss",
        }
    }
}

impl Target {
    /// Returns the URL's host, for reports and for TLS.
    #[must_use]
    pub fn host(&self) -> &str {
        host_of(&self.authority)
    }

    /// Returns scheme, host and port, as they stand before the path.
    pub(crate) fn origin(&self) -> String {
        format!("{}://{}", self.scheme.name(), self.authority)
    }

    /// Returns the URL's port, for reports; 0 for a Unix socket.
    #[must_use]
    pub fn port(&self) -> u16 {
        if matches!(self.place, Place::Unix(_)) {
            return 0;
        }
        let named = self.authority.rsplit_once(':');
        let named = named.and_then(|(_, port)| port.parse().ok());
        named.unwrap_or(self.scheme.default_port())
    }
}

/// Returns the host of an authority, without the brackets of an address of IPv6.
fn host_of(authority: &str) -> &str {
    let inner = authority.strip_prefix('[');
    match inner.and_then(|inner| inner.split_once(']')) {
        Some((address, _)) => address,
        None => authority.split(':').next().unwrap_or_default(),
    }
}

impl fmt::Display for Target {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}{}", self.origin(), self.path)
    }
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        let fail = |reason: &str| TargetError {
            text: text.to_owned(),
            reason: reason.to_owned(),
        };
        let (weight, url) = split_weight(text.trim()).ok_or_else(|| {
            fail("a weight is written weight=N with N from 1 to 1000, before the URL")
        })?;
        if !url.contains("://") {
            return Err(fail("a URL begins with http://, https://, ws:// or wss://"));
        }
        if url.ends_with("://") {
            return Err(fail("the host is missing"));
        }
        let uri: Uri = url
            .split('#')
            .next()
            .unwrap_or_default()
            .parse()
            .map_err(|error: http::uri::InvalidUri| fail(&error.to_string()))?;
        let scheme = match uri.scheme_str() {
            Some("http") => Scheme::Http,
            Some("https") => Scheme::Https,
            Some("ws") => Scheme::Ws,
            Some("wss") => Scheme::Wss,
            _ => return Err(fail("a URL begins with http://, https://, ws:// or wss://")),
        };
        let authority = uri.authority().ok_or_else(|| fail("the host is missing"))?;
        if authority.as_str().contains('@') {
            return Err(fail(
                "user and password have no place in a URL here; -A sends them",
            ));
        }
        let host = host_of(authority.as_str());
        let names_port = authority.as_str().len() > authority.host().len();
        let port = if names_port {
            authority.port_u16().unwrap_or(0)
        } else {
            scheme.default_port()
        };
        if host.is_empty() || port == 0 {
            return Err(fail(
                "a host, and where needed a port from 1 to 65535, must follow ://",
            ));
        }
        let path = uri.path_and_query().map_or("", |path| path.as_str());
        Ok(Self {
            scheme,
            place: Place::Tcp {
                host: host.to_owned(),
                port,
            },
            authority: authority.to_string(),
            path: if path.starts_with('/') {
                path.to_owned()
            } else {
                format!("/{path}")
            },
            weight,
        })
    }
}

fn split_weight(text: &str) -> Option<(u32, &str)> {
    let Some(rest) = text.strip_prefix("weight=") else {
        return Some((1, text));
    };
    let (weight, url) = rest.split_once(' ')?;
    let weight = weight.parse().ok()?;
    (1..=WEIGHT_MAX)
        .contains(&weight)
        .then_some((weight, url.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_taken_apart() {
        let target: Target = "http://127.0.0.1:5000?field=hello".parse().expect("valid");
        assert_eq!((target.host(), target.port()), ("127.0.0.1", 5000));
        assert_eq!(target.path, "/?field=hello");
        let target: Target = "weight=3 https://[::1]/a#b".parse().expect("valid");
        assert_eq!((target.host(), target.port()), ("::1", 443));
        assert_eq!((target.weight, target.authority.as_str()), (3, "[::1]"));
        assert_eq!(target.to_string(), "https://[::1]/a");
    }

    #[test]
    fn the_host_behind_a_unix_socket_or_a_proxy_is_that_of_the_authority() {
        let socket = Place::Unix("socket".into());
        let (host, port) = ("proxy.test".to_owned(), 3128);
        let proxy = Place::Tcp { host, port };
        for (url, place, host, port) in [
            ("https://[::1]:8443/", &socket, "::1", 0),
            ("https://a.test:8443/", &socket, "a.test", 0),
            ("http://a.test/", &proxy, "a.test", 80),
            ("http://[::1]/", &proxy, "::1", 80),
            ("http://[::1]:8080/", &proxy, "::1", 8080),
        ] {
            let mut target: Target = url.parse().expect("valid");
            target.place = place.clone();
            assert_eq!((target.host(), target.port()), (host, port));
        }
    }

    #[test]
    fn what_is_no_url_is_reported_why() {
        for text in [
            "127.0.0.1:5000",
            "ftp://host/",
            "http://",
            "http://host:99999/",
            "http://user:password@host/",
            "weight=0 http://host/",
            "weight=3",
            "",
        ] {
            let error = text.parse::<Target>().expect_err(text).to_string();
            assert!(error.contains(text), "{error}");
        }
    }
}
