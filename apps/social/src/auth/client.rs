use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use axum::extract::{ConnectInfo, FromRequestParts};
use http::HeaderMap;
use http::request::Parts;
use ipnet::IpNet;

use crate::{App, Failure};

/// The bits of an IPv6 address that belong to one client: networks of homes and phones are given whole.
const IPV6_CLIENT_BITS: u8 = 64;

/// Where a request comes from, as limits count it: the address of the client, of IPv6 its network of 64 bits. What
/// `X-Forwarded-For` says is believed as far as [trusted proxies](crate::config::Settings::trusted_proxies) have written it.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Client(pub IpAddr);

impl FromRequestParts<App> for Client {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Failure> {
        let Some(ConnectInfo(peer)) = parts.extensions.get::<ConnectInfo<SocketAddr>>() else {
            return Err(Failure::internal("the server does not say who connected"));
        };
        let address = farthest_trusted(peer.ip(), &parts.headers, &app.settings.trusted_proxies);
        Ok(Self(network(address)))
    }
}

/// The first address, from here on outwards, that is none of our proxies'.
fn farthest_trusted(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) -> IpAddr {
    let is_trusted = |address: IpAddr| {
        let address = address.to_canonical();
        trusted.iter().any(|network| network.contains(&address))
    };
    let mut address = peer;
    let lines = headers.get_all("x-forwarded-for").iter().rev();
    let texts = lines.flat_map(|line| line.to_str().unwrap_or_default().rsplit(','));
    for text in texts {
        if !is_trusted(address) {
            break;
        }
        // What is no address was not written by one of ours.
        let Some(next) = parse(text.trim()) else {
            break;
        };
        address = next;
    }
    address
}

/// Some proxies add the port.
fn parse(text: &str) -> Option<IpAddr> {
    let with_port = || text.parse::<SocketAddr>().ok().map(|address| address.ip());
    text.parse().ok().or_else(with_port)
}

fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => {
            let mask = u128::MAX << (128 - IPV6_CLIENT_BITS);
            Ipv6Addr::from_bits(address.to_bits() & mask).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn farthest(peer: &str, forwarded: &[&'static str]) -> String {
        let mut headers = HeaderMap::new();
        for line in forwarded {
            headers.append("x-forwarded-for", HeaderValue::from_static(line));
        }
        let trusted = ["10.0.0.0/8", "fd00::/8"].map(|network| network.parse().expect("a network"));
        let peer = peer.parse().expect("an address");
        network(farthest_trusted(peer, &headers, &trusted)).to_string()
    }

    #[test]
    fn a_client_cannot_choose_its_address() {
        assert_eq!(farthest("203.0.113.7", &["198.51.100.1"]), "203.0.113.7");
        assert_eq!(
            farthest("10.0.0.1", &["198.51.100.1, 203.0.113.7"]),
            "203.0.113.7"
        );
    }

    #[test]
    fn proxies_behind_proxies_are_looked_through() {
        let lines = ["198.51.100.1, 203.0.113.7:4711", "10.1.1.1"];
        assert_eq!(farthest("10.0.0.1", &lines), "203.0.113.7");
        assert_eq!(farthest("::ffff:10.0.0.1", &lines), "203.0.113.7");
        assert_eq!(farthest("10.0.0.1", &[]), "10.0.0.1");
        assert_eq!(farthest("10.0.0.1", &["203.0.113.7, nonsense"]), "10.0.0.1");
    }

    #[test]
    fn a_home_is_one_client() {
        let address = "2001:db8:1:2:3:4:5:6";
        assert_eq!(farthest(address, &[]), "2001:db8:1:2::");
        assert_eq!(
            farthest("fd00::1", &["2001:db8:1:2:ffff::1"]),
            "2001:db8:1:2::"
        );
    }
}
