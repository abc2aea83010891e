//! Sockets for connections to a server.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;

use nix::sys::socket::{setsockopt, sockopt};
use socket2::{Domain, Socket, Type};

use super::Address;

/// Creates a stream socket that does not block, bound to `source` where one is given, and not yet
/// connected. `window_bytes` is the size of each of its two buffers.
///
/// # Errors
/// The kernel's; a `source` that is no address of this machine is told apart from having no more
/// ports.
pub(crate) fn socket(
    address: &Address,
    source: Option<IpAddr>,
    window_bytes: Option<usize>,
) -> io::Result<OwnedFd> {
    let domain = match address {
        Address::Tcp(address) => Domain::for_address(*address),
        Address::Unix(_) => Domain::UNIX,
    };
    let socket = Socket::new(domain, Type::STREAM.nonblocking(), None)?;
    if let Some(bytes) = window_bytes {
        socket.set_recv_buffer_size(bytes)?;
        socket.set_send_buffer_size(bytes)?;
    }
    if let Some(source) = source {
        bind(&socket, source)?;
    }
    Ok(socket.into())
}

fn bind(socket: &Socket, source: IpAddr) -> io::Result<()> {
    // The port is chosen when connecting: then one that is in use towards another server serves as
    // well.
    setsockopt(socket, sockopt::IpBindAddressNoPort, &true)?;
    socket
        .bind(&SocketAddr::new(source, 0).into())
        .map_err(|error| {
            let text = format!("cannot send from {source}: {error}");
            io::Error::new(io::ErrorKind::InvalidInput, text)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_foreign_source_address_is_reported() {
        let address = Address::Tcp(([127, 0, 0, 1], 1).into());
        let source = "192.0.2.1".parse().expect("an address");
        let error = socket(&address, Some(source), None).expect_err("it is for documentation only");
        assert!(error.to_string().contains("192.0.2.1"), "{error}");
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }
}
