//! Sockets for connections to a server.

use std::io;
use std::net::{IpAddr, SocketAddr};

use nix::sys::socket::{setsockopt, sockopt};
use socket2::{Domain, Protocol, Socket, Type};

/// A TCP socket that does not block and does not delay small writes, bound to `source` where one is given, and not yet connected.
/// `window_bytes` is the size of each of its two buffers.
///
/// # Errors
/// What the kernel says; that `source` is no address of this machine is told apart from having no more ports.
pub(super) fn open(
    address: &SocketAddr,
    source: Option<IpAddr>,
    window_bytes: Option<usize>,
) -> io::Result<Socket> {
    let socket = Socket::new(
        Domain::for_address(*address),
        Type::STREAM.nonblocking(),
        Some(Protocol::TCP),
    )?;
    socket.set_tcp_nodelay(true)?;
    if let Some(bytes) = window_bytes {
        socket.set_recv_buffer_size(bytes)?;
        socket.set_send_buffer_size(bytes)?;
    }
    if let Some(source) = source {
        bind(&socket, source)?;
    }
    Ok(socket)
}

fn bind(socket: &Socket, source: IpAddr) -> io::Result<()> {
    // The port is chosen when connecting: then one that is in use towards another server serves as well.
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
    fn a_connection_comes_from_the_source_address() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let source = "127.0.0.2".parse().expect("an address");
        let socket = open(&address, Some(source), Some(65_536)).expect("a socket");
        socket.set_nonblocking(false).expect("it may block");
        socket.connect(&address.into()).expect("it listens");
        let (_, peer) = listener.accept().expect("it was connected");
        assert_eq!(peer.ip(), source);
    }

    #[test]
    fn a_foreign_source_address_is_told() {
        let address = "127.0.0.1:1".parse().expect("an address");
        let source = "192.0.2.1".parse().expect("an address");
        let error = open(&address, Some(source), None).expect_err("it is for documentation only");
        assert!(error.to_string().contains("192.0.2.1"), "{error}");
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }
}
