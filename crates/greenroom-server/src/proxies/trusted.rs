use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;

use http::{HeaderMap, Request};
use ipnet::{IpNet, Ipv4Net};

use super::{ForwardedFor, ForwardedHeader};

/// Entries of a forwarding header that are looked at in one request; nobody has so many proxies in
/// a row. What stands before them is not believed: the client is then the address that was reached.
pub const FORWARDED_ENTRIES_MAX: usize = 32;

/// Proxies that are believed about their clients.
///
/// By default there are none, and the client is whoever is connected. Of a request that a trusted
/// proxy sent, the client is the first address that is no trusted proxy's, from the connection
/// outwards: the connected address, then the entries of the [header](ForwardedHeader) from its end.
/// So whatever a client writes there itself is not believed.
///
/// ```
/// use greenroom_server::TrustedProxies;
///
/// let proxies: TrustedProxies = "10.0.0.0/8, fd00::/8, ::1, unix".parse()?;
/// let mut headers = http::HeaderMap::new();
/// headers.insert("x-forwarded-for", "198.51.100.1, 203.0.113.7, 10.0.0.2".parse()?);
/// let client = proxies.client("10.0.0.1:4711".parse().ok(), &headers);
/// assert_eq!(client.map(|client| client.to_string()), Some("203.0.113.7".to_owned()));
///
/// let error = "localhost".parse::<TrustedProxies>().unwrap_err();
/// assert!(error.to_string().contains("`localhost`"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustedProxies {
    networks: Arc<[IpNet]>,
    unix: bool,
    header: ForwardedHeader,
}

/// The sender of a connection's requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sender {
    Client,
    TrustedProxy,
}

/// One or more proxies that are trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrustedProxy {
    /// Those whose address is in this network: `10.0.0.0/8`, `::1`.
    Network(IpNet),
    /// All that connect to a Unix socket of the server: `unix`.
    Unix,
}

/// A text that names no [`TrustedProxy`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` names no proxies: allowed are networks such as 10.0.0.0/8 and fd00::/8, \
     addresses such as ::1, and unix"
)]
pub struct TrustedProxyError {
    text: String,
}

impl TrustedProxies {
    /// The field that these proxies write. Default: `X-Forwarded-For`.
    #[must_use]
    pub fn header(self, header: ForwardedHeader) -> Self {
        Self { header, ..self }
    }

    /// Returns `true` if there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.networks.is_empty() && !self.unix
    }

    /// Returns `true` if the peer at this address is one of them; `None` is one on a Unix socket.
    #[must_use]
    pub fn trusts(&self, peer: Option<IpAddr>) -> bool {
        let Some(address) = peer else {
            return self.unix;
        };
        let address = address.to_canonical();
        let mut networks = self.networks.iter();
        networks.any(|network| network.contains(&address))
    }

    /// Returns the client of a request with these headers that this peer has sent (`None`: one on a
    /// Unix socket). `None` if nothing is known of it: the peer has no address, and is not trusted
    /// or tells none. At an entry that is no address the walk ends, at the last proxy that told
    /// one. At most [`FORWARDED_ENTRIES_MAX`] entries are looked at.
    #[must_use]
    pub fn client(&self, peer: Option<SocketAddr>, headers: &HeaderMap) -> Option<ForwardedFor> {
        let mut client = peer.map(ForwardedFor::from);
        let mut entries = self.header.entries(headers).take(FORWARDED_ENTRIES_MAX);
        while self.trusts(client.map(|client| client.ip))
            && let Some(Some(next)) = entries.next()
        {
            client = Some(next);
        }
        client
    }

    /// Returns the sender at the other end of a connection.
    pub(crate) fn sender(&self, peer: Option<SocketAddr>) -> Sender {
        if self.trusts(peer.map(|peer| peer.ip())) {
            Sender::TrustedProxy
        } else {
            Sender::Client
        }
    }

    /// Puts the client into the extensions of a request that a trusted proxy sent, and returns it.
    pub(crate) fn tell<B>(
        &self,
        sender: Sender,
        peer: Option<SocketAddr>,
        request: &mut Request<B>,
    ) -> Option<ForwardedFor> {
        if sender == Sender::Client {
            return None;
        }
        let client = self.client(peer, request.headers())?;
        request.extensions_mut().insert(client);
        Some(client)
    }
}

impl<P: Into<TrustedProxy>> FromIterator<P> for TrustedProxies {
    fn from_iter<I: IntoIterator<Item = P>>(proxies: I) -> Self {
        let mut networks = Vec::new();
        let mut unix = false;
        for proxy in proxies {
            match proxy.into() {
                TrustedProxy::Network(network) => networks.push(canonical(network)),
                TrustedProxy::Unix => unix = true,
            }
        }
        Self {
            networks: networks.into(),
            unix,
            header: ForwardedHeader::default(),
        }
    }
}

/// Addresses of IPv4 that are mapped to IPv6 are compared as those of IPv4, and so must be their
/// networks.
fn canonical(network: IpNet) -> IpNet {
    let IpAddr::V4(address) = network.addr().to_canonical() else {
        return network;
    };
    let mapped_bits = network.max_prefix_len() - 32;
    let bits = network.prefix_len().checked_sub(mapped_bits);
    let canonical = bits.and_then(|bits| Ipv4Net::new(address, bits).ok());
    canonical.map_or(network, IpNet::V4)
}

impl FromStr for TrustedProxies {
    type Err = TrustedProxyError;

    /// Reads a list, with commas or blanks between; an empty one trusts nobody.
    fn from_str(text: &str) -> Result<Self, TrustedProxyError> {
        let words = text.split([',', ' ', '\t']).filter(|word| !word.is_empty());
        words.map(str::parse::<TrustedProxy>).collect()
    }
}

impl FromStr for TrustedProxy {
    type Err = TrustedProxyError;

    fn from_str(text: &str) -> Result<Self, TrustedProxyError> {
        if text == "unix" {
            return Ok(Self::Unix);
        }
        let address = || text.parse::<IpAddr>().map(IpNet::from);
        let network = text.parse().or_else(|_| address());
        network.map(Self::Network).map_err(|_| TrustedProxyError {
            text: text.to_owned(),
        })
    }
}

impl From<IpNet> for TrustedProxy {
    fn from(network: IpNet) -> Self {
        Self::Network(network)
    }
}

impl fmt::Display for TrustedProxy {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Network(network) => network.fmt(out),
            Self::Unix => out.write_str("unix"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRUSTED: &str = "10.0.0.0/8 fd00::/8,::1, ::ffff:192.168.0.0/112";

    /// The client of a request from `peer`, or from a Unix socket.
    fn client(trusted: &str, peer: &str, lines: &[&str]) -> String {
        let proxies: TrustedProxies = trusted.parse().expect("a list of networks");
        let peer = (peer != "unix").then(|| peer.parse().expect("an address"));
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append("x-forwarded-for", line.parse().expect("a line"));
            headers.append("forwarded", "for=192.0.2.66".parse().expect("a line"));
        }
        let client = proxies.client(peer.map(|ip| SocketAddr::new(ip, 47)), &headers);
        client.map_or("nobody".to_owned(), |client| client.to_string())
    }

    #[test]
    fn the_client_is_the_first_address_from_here_that_is_no_trusted_proxys() {
        for (peer, lines, expected) in [
            // Nobody is believed who is not trusted.
            ("203.0.113.7", &["198.51.100.1"][..], "203.0.113.7:47"),
            ("203.0.113.7", &[], "203.0.113.7:47"),
            // One proxy; what its client has sent stands before what it added.
            ("10.0.0.1", &["203.0.113.7"], "203.0.113.7"),
            (
                "10.0.0.1",
                &["198.51.100.1, 203.0.113.7:80"],
                "203.0.113.7:80",
            ),
            ("10.0.0.1", &["10.0.0.9", "203.0.113.7"], "203.0.113.7"),
            // Proxies behind proxies.
            (
                "10.0.0.1",
                &["198.51.100.1, 203.0.113.7", "10.1.1.1"],
                "203.0.113.7",
            ),
            ("::1", &["203.0.113.7, 10.1.1.1,fd00::2"], "203.0.113.7"),
            ("fd00::1", &["[2001:db8::5]:80"], "[2001:db8::5]:80"),
            // IPv4 in IPv6, of the peer, of an entry, of a network.
            ("::ffff:10.0.0.1", &["::ffff:203.0.113.7"], "203.0.113.7"),
            ("192.168.3.4", &["203.0.113.7"], "203.0.113.7"),
            // A request of the proxy's own, such as a health check.
            ("10.0.0.1", &[], "10.0.0.1:47"),
            ("10.0.0.1", &["10.0.0.2"], "10.0.0.2"),
            // Hidden, or no address: then no more is known than the proxy that says so.
            ("10.0.0.1", &["203.0.113.7, unknown"], "10.0.0.1:47"),
            ("10.0.0.1", &["203.0.113.7, nonsense, 10.0.0.2"], "10.0.0.2"),
        ] {
            assert_eq!(client(TRUSTED, peer, lines), expected, "{peer} {lines:?}");
        }
    }

    #[test]
    fn who_comes_by_a_unix_socket_is_known_if_that_is_trusted() {
        assert_eq!(client("", "unix", &["203.0.113.7"]), "nobody");
        assert_eq!(client("10.0.0.0/8", "unix", &["203.0.113.7"]), "nobody");
        assert_eq!(client("unix", "unix", &["203.0.113.7"]), "203.0.113.7");
        assert_eq!(client("unix", "unix", &[]), "nobody");
    }

    #[test]
    fn of_the_two_headers_one_is_read() {
        let proxies: TrustedProxies = "10.0.0.0/8".parse().expect("a network");
        let proxies = proxies.header(ForwardedHeader::Forwarded);
        let mut headers = HeaderMap::new();
        let peer = "10.0.0.1:47".parse().ok();
        headers.insert("x-forwarded-for", "198.51.100.1".parse().expect("a line"));
        let none = proxies.client(peer, &headers).map(|client| client.ip);
        assert_eq!(none, "10.0.0.1".parse().ok());
        headers.insert("forwarded", "for=203.0.113.7".parse().expect("a line"));
        let told = proxies.client(peer, &headers).map(|client| client.ip);
        assert_eq!(told, "203.0.113.7".parse().ok());
    }

    #[test]
    fn the_walk_has_an_end() {
        let chain = |hops: usize| format!("203.0.113.7{}", ", 10.0.0.2".repeat(hops));
        let most = FORWARDED_ENTRIES_MAX - 1;
        assert_eq!(client(TRUSTED, "10.0.0.1", &[&chain(most)]), "203.0.113.7");
        assert_eq!(client(TRUSTED, "10.0.0.1", &[&chain(most + 1)]), "10.0.0.2");
    }

    #[test]
    fn what_names_no_network_is_refused_by_name() {
        for wrong in [
            "localhost",
            "10.0.0.0/33",
            "10.0.0",
            "unix:/run/a",
            "::1/129",
        ] {
            let list = format!("10.0.0.0/8, {wrong}");
            let error = list.parse::<TrustedProxies>().expect_err(wrong);
            assert!(error.to_string().contains(&format!("`{wrong}`")), "{error}");
        }
        assert!(
            "".parse::<TrustedProxies>()
                .is_ok_and(|proxies| proxies.is_empty())
        );
    }
}
