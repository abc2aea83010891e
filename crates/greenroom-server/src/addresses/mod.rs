//! Limits on what one address may ask of a server: connections at once, and requests a second.

mod connections;
mod owner;
mod rates;

use std::net::IpAddr;
use std::sync::Arc;

use crate::Limits;
use crate::proxies::TrustedProxies;
use connections::Connections;
#[cfg(feature = "http3")]
pub(crate) use connections::Connections as Places;
pub(crate) use connections::Place;
pub(crate) use owner::{Owner, TooMany};
use rates::Rates;

/// The limits for each address, shared by all loops of a server. Those that are off cost nothing.
#[derive(Debug)]
pub(crate) struct Addresses {
    connections: Option<Arc<Connections>>,
    rates: Option<Rates>,
    trusted_proxies: TrustedProxies,
}

impl Addresses {
    pub(crate) fn new(limits: &Limits, trusted_proxies: &TrustedProxies) -> Arc<Self> {
        let connections_max = limits.address_connections_max;
        Arc::new(Self {
            connections: (connections_max < usize::MAX).then(|| Connections::new(connections_max)),
            rates: Rates::new(
                limits.address_requests_rate_max,
                limits.address_requests_burst,
            ),
            trusted_proxies: trusted_proxies.clone(),
        })
    }

    /// Counts a connection of `peer` until its place is dropped; no place if none is needed.
    pub(crate) fn connect(&self, peer: Option<IpAddr>) -> Result<Option<Place>, TooMany> {
        match (&self.connections, self.limited(peer)) {
            (Some(connections), Some(owner)) => connections.take(owner).map(Some),
            _ => Ok(None),
        }
    }

    /// Counts a request of `client`. A proxy whose word is taken has no limit of its own.
    pub(crate) fn request(&self, client: Option<IpAddr>) -> Result<(), TooMany> {
        let Some(rates) = &self.rates else {
            return Ok(());
        };
        self.limited(client)
            .map_or(Ok(()), |owner| rates.take(owner))
    }

    /// Returns the owner that is limited: nobody on a Unix socket, and no trusted proxy.
    fn limited(&self, address: Option<IpAddr>) -> Option<Owner> {
        let address = address.filter(|_| !self.trusted_proxies.trusts(address))?;
        Some(Owner::of(address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trusted_proxies_and_unix_sockets_have_no_limit() {
        let limits = Limits {
            address_connections_max: 0,
            address_requests_rate_max: 1,
            address_requests_burst: 1,
            ..Limits::default()
        };
        let trusted = "10.0.0.0/8".parse().expect("a network");
        let addresses = Addresses::new(&limits, &trusted);
        for (peer, is_limited) in [
            (None, false),
            ("10.1.2.3".parse().ok(), false),
            ("192.0.2.1".parse().ok(), true),
        ] {
            assert_eq!(addresses.connect(peer).is_err(), is_limited, "{peer:?}");
            assert_eq!(addresses.request(peer), Ok(()), "{peer:?}");
            assert_eq!(addresses.request(peer).is_err(), is_limited, "{peer:?}");
        }
    }
}
