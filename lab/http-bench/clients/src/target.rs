//! The target of the load.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::str::FromStr;

use anyhow::{Context, bail, ensure};

/// An `http://127.0.0.1:PORT/path` URL, or one with `https`, taken apart.
#[derive(Clone, Debug)]
pub struct Target {
    /// The server.
    pub address: SocketAddrV4,
    /// True if the server is spoken to over TLS.
    pub is_tls: bool,
    path: String,
}

impl Target {
    /// A request without a body.
    #[must_use]
    pub fn get(&self) -> Vec<u8> {
        let Self { address, path, .. } = self;
        format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").into_bytes()
    }

    /// A request without a body that is the last of its connection.
    #[must_use]
    pub fn get_last(&self) -> Vec<u8> {
        let Self { address, path, .. } = self;
        format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").into_bytes()
    }

    /// A request with a body.
    #[must_use]
    pub fn post(&self, body: &str) -> Vec<u8> {
        let Self { address, path, .. } = self;
        let length = body.len();
        let head = format!("POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Length: {length}");
        format!("{head}\r\n\r\n{body}").into_bytes()
    }
}

impl FromStr for Target {
    type Err = anyhow::Error;

    fn from_str(url: &str) -> anyhow::Result<Self> {
        let (is_tls, rest) = match (url.strip_prefix("http://"), url.strip_prefix("https://")) {
            (Some(rest), _) => (false, rest),
            (None, Some(rest)) => (true, rest),
            (None, None) => bail!("{url:?}: expected http://ADDRESS:PORT/PATH, or https"),
        };
        let slash = rest.find('/').unwrap_or(rest.len());
        let (authority, path) = rest.split_at(slash);
        let address: SocketAddrV4 = authority.parse().with_context(|| {
            format!("{url:?}: expected an IPv4 address and a port, not {authority:?}")
        })?;
        ensure!(
            is_loopback(*address.ip()),
            "{url:?}: load goes only to loopback addresses"
        );
        let path = if path.is_empty() { "/" } else { path };
        ensure!(
            path.bytes().all(|byte| byte.is_ascii_graphic()),
            "{url:?}: the path has blanks or control bytes"
        );
        Ok(Self {
            address,
            is_tls,
            path: path.to_owned(),
        })
    }
}

fn is_loopback(address: Ipv4Addr) -> bool {
    address.is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_is_a_target() {
        assert!("http://127.0.0.1:80/x?y=z".parse::<Target>().is_ok());
        assert!("http://10.0.0.1:80/".parse::<Target>().is_err());
        assert!("http://localhost:80/".parse::<Target>().is_err());
        assert!("127.0.0.1:80".parse::<Target>().is_err());
    }

    #[test]
    fn the_scheme_tells_of_tls() {
        let is_tls = |url: &str| url.parse().map(|target: Target| target.is_tls);
        assert!(!is_tls("http://127.0.0.1:80/").expect("a valid URL"));
        assert!(is_tls("https://127.0.0.1:443/").expect("a valid URL"));
    }

    #[test]
    fn a_missing_path_is_the_root() {
        let target: Target = "http://127.0.0.1:8080".parse().expect("a valid URL");
        assert_eq!(
            target.get(),
            b"GET / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n"
        );
    }
}
