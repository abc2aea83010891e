use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::ConnectInfo;
use http::HeaderMap;
use http::request::Parts;
use ipnet::IpNet;

use super::Client;

/// Who a client is, by its request: what a stage is fair between. Without one it is the address that
/// is connected.
///
/// ```
/// use greenroom_stage::{Client, ClientKey, Placement};
///
/// // Behind a proxy: the address that the proxy saw.
/// let proxies = vec!["10.0.0.0/8".parse()?];
/// let placement = Placement::auto().client_key(ClientKey::forwarded(proxies));
///
/// // By an API key; whoever sends none is known by its address.
/// let by_key = ClientKey::from_fn(|parts| {
///     let key = parts.headers.get("x-api-key")?;
///     Some(Client::named(key.to_str().ok()?))
/// });
/// let placement = Placement::auto().client_key(by_key);
/// # Ok::<(), ipnet::AddrParseError>(())
/// ```
#[derive(Clone)]
pub struct ClientKey(Arc<KeyOfClient>);

/// Tells from a request whose it is.
pub type KeyOfClient = dyn Fn(&Parts) -> Option<Client> + Send + Sync;

impl ClientKey {
    /// Asks this function; where it says nothing, the client is the address that is connected. It is
    /// called where the request came in, on a loop, so it should return at once. What it believes a
    /// client can choose: a name that was not verified lets a flood pretend to be many.
    pub fn from_fn(key: impl Fn(&Parts) -> Option<Client> + Send + Sync + 'static) -> Self {
        Self(Arc::new(key))
    }

    /// The address that the outermost of these proxies saw, by `X-Forwarded-For`. It is believed as
    /// far as these proxies have written it: read from its end, up to the first address that is none
    /// of theirs.
    #[must_use]
    pub fn forwarded(trusted_proxies: Vec<IpNet>) -> Self {
        Self::from_fn(move |parts| {
            let peer = peer(parts)?;
            let address = farthest_trusted(peer, &parts.headers, &trusted_proxies);
            Some(Client::at(address))
        })
    }

    /// Whose this request is; `None` if the key says nothing of it, and it is that of the address
    /// that is connected.
    #[must_use]
    pub fn client(&self, parts: &Parts) -> Option<Client> {
        (self.0)(parts)
    }
}

impl fmt::Debug for ClientKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientKey").finish_non_exhaustive()
    }
}

fn peer(parts: &Parts) -> Option<IpAddr> {
    let told = parts.extensions.get::<ConnectInfo<SocketAddr>>();
    told.map(|ConnectInfo(peer)| peer.ip())
        .or_else(|| Client::current().address())
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

#[cfg(test)]
mod tests {
    use http::{HeaderValue, Request};

    use super::*;

    fn client(peer: &str, forwarded: &[&'static str]) -> String {
        let mut request = Request::new(());
        for line in forwarded {
            let line = HeaderValue::from_static(line);
            request.headers_mut().append("x-forwarded-for", line);
        }
        let peer = SocketAddr::new(peer.parse().expect("an address"), 4711);
        request.extensions_mut().insert(ConnectInfo(peer));
        let trusted = ["10.0.0.0/8", "fd00::/8"].map(|network| network.parse().expect("a network"));
        let key = ClientKey::forwarded(trusted.to_vec());
        let client = key.client(&request.into_parts().0);
        client.expect("an address is known").to_string()
    }

    #[test]
    fn a_client_cannot_choose_its_address() {
        assert_eq!(client("203.0.113.7", &["198.51.100.1"]), "203.0.113.7");
        let lines = ["198.51.100.1, 203.0.113.7"];
        assert_eq!(client("10.0.0.1", &lines), "203.0.113.7");
    }

    #[test]
    fn proxies_behind_proxies_are_looked_through() {
        let lines = ["198.51.100.1, 203.0.113.7:4711", "10.1.1.1"];
        assert_eq!(client("10.0.0.1", &lines), "203.0.113.7");
        assert_eq!(client("::ffff:10.0.0.1", &lines), "203.0.113.7");
        assert_eq!(client("10.0.0.1", &[]), "10.0.0.1");
        let lines = ["203.0.113.7, nonsense"];
        assert_eq!(client("10.0.0.1", &lines), "10.0.0.1");
        assert_eq!(
            client("fd00::1", &["2001:db8:1:2:ffff::1"]),
            "2001:db8:1:2::/64"
        );
    }
}
