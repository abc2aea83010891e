//! Addresses of servers.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use anyhow::Context;

/// Returns an address that was bound and released: the next to bind it is the server that gets it.
///
/// # Errors
/// If there is none.
pub fn free_address() -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no free port")?;
    listener.local_addr().context("no free port")
}
