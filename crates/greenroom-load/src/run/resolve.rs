//! Resolution of names to addresses, once before a run begins.

use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;

use super::{Address, Endpoint, Routes, RunError};
use crate::plan::{Place, Protocol, StreamPlan, Target};
use crate::{session, tls};

/// The time that one of several addresses of a name has to accept a connection.
const PROBE_MAX: Duration = Duration::from_secs(3);

/// Resolves the endpoints of a stream's targets, in their order.
pub(crate) fn endpoints(plan: &StreamPlan) -> Result<Vec<Endpoint>, RunError> {
    if plan.targets.is_empty() {
        return Err(RunError::Plan("a stream needs a URL".to_owned()));
    }
    if plan.paths.is_some() && plan.targets.len() > 1 {
        return Err(RunError::Plan(
            "paths are those of one URL, and there are several".to_owned(),
        ));
    }
    if plan.protocol != Protocol::Http1 {
        session::check(plan)?;
    }
    let is_tls = plan.targets.iter().any(|target| target.scheme.is_tls());
    let config = is_tls.then(|| tls::client_config(&plan.tls, protocols(plan.protocol)));
    let config = config.transpose()?;
    let endpoint = |target: &Target| endpoint(target, plan, config.as_ref());
    let endpoints: Vec<_> = plan
        .targets
        .iter()
        .map(endpoint)
        .collect::<Result<_, _>>()?;
    check_shares(plan, &endpoints)?;
    Ok(endpoints)
}

/// Checks that each thread has a connection, and a closed loop that keeps them one for each server:
/// a kept connection stays with its server.
fn check_shares(plan: &StreamPlan, endpoints: &[Endpoint]) -> Result<(), RunError> {
    let threads = plan.threads.max(1);
    if plan.connections < threads {
        return Err(RunError::Plan(format!(
            "{threads} threads need as many connections, and {} are allowed",
            plan.connections
        )));
    }
    let servers = Routes::new(endpoints, 0).origins();
    let connections = plan.connections / threads;
    let too_few = usize::try_from(connections).is_ok_and(|connections| connections < servers);
    if too_few && plan.keep_alive && !plan.is_open_loop() {
        return Err(RunError::Plan(format!(
            "{connections} connections for each thread are too few to keep one alive to each of \
            {servers} servers"
        )));
    }
    Ok(())
}

fn protocols(protocol: Protocol) -> &'static [&'static [u8]] {
    match protocol {
        Protocol::Http1 | Protocol::WebSocket => &[b"http/1.1"],
        Protocol::Http2 => &[b"h2"],
    }
}

fn endpoint(
    target: &Target,
    plan: &StreamPlan,
    config: Option<&Arc<ClientConfig>>,
) -> Result<Endpoint, RunError> {
    let is_web_socket = target.scheme.protocol() == Protocol::WebSocket;
    if is_web_socket != (plan.protocol == Protocol::WebSocket) {
        return Err(RunError::Plan(format!(
            "{target}: a stream is WebSocket or HTTP, not both"
        )));
    }
    let tls = match config.filter(|_| target.scheme.is_tls()) {
        Some(config) => Some((Arc::clone(config), tls::server_name(target)?)),
        None => None,
    };
    Ok(Endpoint {
        target: target.clone(),
        address: address(&target.place, &plan.sources)?,
        tls,
    })
}

/// Returns the address of a place, of the family of those that requests are to come from.
fn address(place: &Place, sources: &[IpAddr]) -> Result<Address, RunError> {
    let (host, port) = match place {
        Place::Unix(path) => return Ok(Address::Unix(path.clone())),
        Place::Tcp { host, port } => (host, *port),
    };
    let fail = |reason: String| RunError::Resolve {
        host: host.clone(),
        reason,
    };
    let found = (host.as_str(), port).to_socket_addrs();
    let mut found: Vec<_> = found.map_err(|error| fail(error.to_string()))?.collect();
    found.retain(|address| {
        let mut sources = sources.iter();
        sources.all(|source| source.is_ipv4() == address.is_ipv4())
    });
    if found.is_empty() && !sources.is_empty() {
        let text = format!("{host} has no address that all the source addresses can connect to");
        return Err(RunError::Plan(text));
    }
    let first = *found
        .first()
        .ok_or_else(|| fail("it has no address".to_owned()))?;
    Ok(Address::Tcp(match found.len() {
        1 => first,
        _ => accepting(&found).unwrap_or(first),
    }))
}

/// Returns the first address that accepts connections: of those of `localhost` often only one does.
fn accepting(addresses: &[SocketAddr]) -> Option<SocketAddr> {
    let accepts = |address: &&SocketAddr| TcpStream::connect_timeout(address, PROBE_MAX).is_ok();
    addresses.iter().find(accepts).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_of_the_family_of_the_sources() {
        let place = |host: &str| Place::Tcp {
            host: host.to_owned(),
            port: 1,
        };
        let source = "127.0.0.2".parse().expect("an address");
        let Address::Tcp(found) = address(&place("localhost"), &[source]).expect("it has one")
        else {
            panic!("it is no path");
        };
        assert!(found.is_ipv4());
        let error = address(&place("::1"), &[source]).expect_err("there is none");
        assert!(error.to_string().contains("source addresses"), "{error}");
    }
}
