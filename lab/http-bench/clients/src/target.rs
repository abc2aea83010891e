//! The target of the load.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::str::FromStr;

use anyhow::{Context, bail, ensure};

/// An `http://127.0.0.1:PORT/path` URL, taken apart.
#[derive(Clone, Debug)]
pub struct Target {
    /// The server.
    pub address: SocketAddrV4,
    path: String,
}

impl Target {
    /// A request without a body.
    #[must_use]
    pub fn get(&self) -> Vec<u8> {
        let Self { address, path } = self;
        format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").into_bytes()
    }

    /// A request with a body.
    #[must_use]
    pub fn post(&self, body: &str) -> Vec<u8> {
        let Self { address, path } = self;
        let length = body.len();
        let head = format!("POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Length: {length}");
        format!("{head}\r\n\r\n{body}").into_bytes()
    }
}

impl FromStr for Target {
    type Err = anyhow::Error;

    fn from_str(url: &str) -> anyhow::Result<Self> {
        let Some(rest) = url.strip_prefix("http://") else {
            bail!("{url:?}: expected http://ADDRESS:PORT/PATH");
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
    fn a_missing_path_is_the_root() {
        let target: Target = "http://127.0.0.1:8080".parse().expect("a valid URL");
        assert_eq!(
            target.get(),
            b"GET / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n"
        );
    }
}
