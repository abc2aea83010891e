//! HTTP to addresses that users name. They must not lead into our own network.

use std::error::Error;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder, Request, Response};
use url::{Host, Url};

use super::worker::Setback;
use crate::cryptography;

/// Returns a client for HTTP and HTTPS that follows no redirects and uses no proxy.
pub(crate) fn client() -> ClientBuilder {
    cryptography::provide();
    Client::builder().no_proxy().redirect(Policy::none())
}

/// A client that sends requests to public addresses only, unless private ones are allowed.
#[derive(Clone, Debug)]
pub(super) struct Outside {
    client: Client,
    allow_private: bool,
}

/// The error of an address that is not public.
#[derive(Debug, thiserror::Error)]
#[error("{0} is at a private address, where nothing may be sent to")]
struct PrivateAddress(String);

impl Outside {
    /// Makes a client. `timeout` is for one request as a whole.
    pub(super) fn new(allow_private: bool, timeout: Duration) -> anyhow::Result<Self> {
        let builder = client().timeout(timeout);
        let builder = if allow_private {
            builder
        } else {
            builder.https_only(true).dns_resolver(PublicOnly)
        };
        let client = builder.build()?;
        Ok(Self {
            client,
            allow_private,
        })
    }

    /// Sends a request. The response's body is not read.
    pub(super) async fn send(&self, request: Request) -> Result<Response, Setback> {
        self.check(request.url())?;
        self.client.execute(request).await.map_err(setback)
    }

    /// Checks what can be checked without resolving the name.
    fn check(&self, url: &Url) -> Result<(), Setback> {
        if self.allow_private {
            return Ok(());
        }
        if url.scheme() != "https" {
            return Err(Setback::Permanent(format!(
                "`{}` does not begin with https",
                place(url)
            )));
        }
        let is_outside = match url.host() {
            Some(Host::Ipv4(address)) => is_public(IpAddr::V4(address)),
            Some(Host::Ipv6(address)) => is_public(IpAddr::V6(address)),
            Some(Host::Domain(_)) => true,
            None => false,
        };
        if is_outside {
            return Ok(());
        }
        Err(Setback::permanent(PrivateAddress(place(url))))
    }
}

/// Returns scheme and host only: the rest of such an address is often a secret.
fn place(url: &Url) -> String {
    format!("{}://{}", url.scheme(), url.host_str().unwrap_or_default())
}

fn setback(error: reqwest::Error) -> Setback {
    let error = error.without_url();
    let mut source: Option<&(dyn Error + 'static)> = Some(&error);
    let mut deepest = error.to_string();
    while let Some(cause) = source {
        if let Some(denied) = cause.downcast_ref::<PrivateAddress>() {
            return Setback::permanent(denied);
        }
        deepest = cause.to_string();
        source = cause.source();
    }
    Setback::Temporary {
        error: deepest,
        after: None,
    }
}

/// A resolver that rejects names which lead into private networks. It runs at the moment of
/// connecting, so that a name cannot change its address after the check.
struct PublicOnly;

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found: Vec<SocketAddr> =
                tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            if found.iter().all(|address| is_public(address.ip())) {
                return Ok(Box::new(found.into_iter()) as Addrs);
            }
            Err(Box::new(PrivateAddress(name.as_str().to_owned())) as Box<dyn Error + Send + Sync>)
        })
    }
}

/// True if an address is of the public Internet (the IANA registries of special-purpose addresses).
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => match address.to_ipv4_mapped() {
            Some(mapped) => is_public_v4(mapped),
            None => is_public_v6(address),
        },
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let is_shared = |octets: [u8; 4]| match octets {
        [100, second, ..] => (64..128).contains(&second),
        [192, 0, 0, _] | [198, 18..=19, ..] => true,
        [first, ..] => first == 0 || first >= 240,
    };
    !(address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation()
        || address.is_multicast()
        || is_shared(address.octets()))
}

/// True for `2000::/3`, which is all that is routed, without documentation and the tunnels that
/// carry other addresses.
fn is_public_v6(address: Ipv6Addr) -> bool {
    match address.segments() {
        [0x2001, 0 | 0xdb8, ..] | [0x2002 | 0x3fff, ..] => false,
        [first, ..] => (0x2000..0x4000).contains(&first),
    }
}

/// Returns the delay that a response asks for in `Retry-After`: in seconds, or until a date.
pub(super) fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let moment = rfc2822::parse(value).ok()?.timestamp();
    Duration::try_from(moment.duration_since(now)).ok()
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;

    use super::*;

    #[test]
    fn only_public_addresses_are_public() {
        let public = [
            "1.1.1.1",
            "100.63.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "2606:4700::1111",
            "::ffff:1.1.1.1",
        ];
        let private = [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "127.9.9.9",
            "169.254.169.254",
            "172.16.0.1",
            "192.168.1.1",
            "192.0.0.8",
            "192.0.2.1",
            "198.18.0.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::",
        ];
        let is_public = |text: &&str| is_public(text.parse().expect("it is an address"));
        assert_eq!(
            public.iter().filter(|address| !is_public(address)).count(),
            0
        );
        let wrong: Vec<_> = private
            .iter()
            .filter(|address| is_public(address))
            .collect();
        assert!(wrong.is_empty(), "{wrong:?}");
    }

    #[tokio::test]
    async fn what_leads_inside_is_refused_for_good() {
        let outside = Outside::new(false, Duration::from_secs(5)).expect("a client is built");
        for url in [
            "http://example.org/secret",
            "https://10.0.0.1/?secret",
            "https://[fe80::1]/secret",
            "https://localhost:1/secret",
        ] {
            let url = url.parse().expect("it is a URL");
            let sent = outside.send(Request::new(reqwest::Method::POST, url)).await;
            let Err(Setback::Permanent(reason)) = sent else {
                panic!("{sent:?}");
            };
            assert!(!reason.contains("secret"), "{reason}");
        }
    }

    #[test]
    fn how_long_to_wait_is_said_in_seconds_or_as_a_date() {
        let now = "2026-10-21T07:27:00Z".parse().expect("it is a time");
        let delay = |value| {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static(value))]);
            retry_after(&headers, now)
        };
        assert_eq!(delay("120"), Some(Duration::from_mins(2)));
        assert_eq!(
            delay("Wed, 21 Oct 2026 07:28:00 GMT"),
            Some(Duration::from_mins(1))
        );
        assert_eq!(delay("Wed, 21 Oct 2026 07:26:00 GMT"), None);
        assert_eq!(delay("soon"), None);
    }
}
