//! The processes that listen where a target points.

use std::collections::{BTreeSet, HashSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::path::Path;

use nix::ifaddrs::getifaddrs;
use procfs::net::{TcpState, tcp, tcp6, unix};
use procfs::process::{FDTarget, Process, all_processes};

use crate::plan::Place;

/// Returns the processes that hold a socket that listens there, without those whose descriptors may
/// not be seen.
pub(super) fn owners(place: &Place) -> BTreeSet<i32> {
    let inodes = match place {
        Place::Tcp { host, port } => tcp_inodes(host, *port),
        Place::Unix(path) => unix_inodes(path),
    };
    if inodes.is_empty() {
        return BTreeSet::new();
    }
    let processes = all_processes().into_iter().flatten().flatten();
    processes
        .filter(|process| holds_one_of(process, &inodes) && !is_service_manager(process))
        .map(|process| process.pid)
        .collect()
}

/// Returns true if it keeps the sockets of others (`systemd.socket`), and serves nothing itself:
/// all processes of a machine may be its children.
fn is_service_manager(process: &Process) -> bool {
    process.stat().is_ok_and(|stat| stat.comm == "systemd")
}

fn holds_one_of(process: &Process, inodes: &HashSet<u64>) -> bool {
    let descriptors = process.fd().into_iter().flatten().flatten();
    descriptors.into_iter().any(|descriptor| {
        matches!(descriptor.target, FDTarget::Socket(inode) if inodes.contains(&inode))
    })
}

fn unix_inodes(path: &Path) -> HashSet<u64> {
    let sockets = unix().unwrap_or_default();
    sockets
        .into_iter()
        .filter(|socket| socket.path.as_deref() == Some(path))
        .map(|socket| socket.inode)
        .collect()
}

fn tcp_inodes(host: &str, port: u16) -> HashSet<u64> {
    let Ok(addresses) = (host, port).to_socket_addrs() else {
        return HashSet::new();
    };
    let here = addresses_of_this_machine();
    let listeners = listeners_on(port);
    addresses
        .map(|address| address.ip())
        .filter(|ip| ip.is_loopback() || ip.is_unspecified() || here.contains(ip))
        .flat_map(|ip| accepting(&listeners, ip))
        .collect()
}

fn addresses_of_this_machine() -> HashSet<IpAddr> {
    let ip = |address: nix::ifaddrs::InterfaceAddress| {
        let address = address.address?;
        let v4 = address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
        v4.or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())))
    };
    getifaddrs().into_iter().flatten().filter_map(ip).collect()
}

fn listeners_on(port: u16) -> Vec<(IpAddr, u64)> {
    let sockets = [tcp(), tcp6()].into_iter().flatten().flatten();
    sockets
        .filter(|socket| socket.state == TcpState::Listen)
        .filter(|socket| socket.local_address.port() == port)
        .map(|socket| (socket_ip(socket.local_address), socket.inode))
        .collect()
}

/// `::ffff:1.2.3.4` is the IPv4 address that it means.
fn socket_ip(address: SocketAddr) -> IpAddr {
    address.ip().to_canonical()
}

/// Returns the listeners that get a connection to `ip`: the kernel prefers one bound to this very
/// address to one bound to all.
fn accepting(listeners: &[(IpAddr, u64)], ip: IpAddr) -> Vec<u64> {
    let any_v4 = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    let any_v6 = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
    let choices = match ip {
        IpAddr::V4(v4) if v4.is_unspecified() => vec![Ipv4Addr::LOCALHOST.into(), any_v4, any_v6],
        IpAddr::V4(_) => vec![ip, any_v4, any_v6],
        IpAddr::V6(v6) if v6.is_unspecified() => vec![Ipv6Addr::LOCALHOST.into(), any_v6],
        IpAddr::V6(_) => vec![ip, any_v6],
    };
    let bound_to = |choice: &IpAddr| -> Vec<u64> {
        let matching = listeners.iter().filter(|(address, _)| address == choice);
        matching.map(|(_, inode)| *inode).collect()
    };
    let found = choices.iter().map(bound_to);
    found
        .into_iter()
        .find(|found| !found.is_empty())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn the_closest_listener_accepts() {
        let listeners = [
            (ip("0.0.0.0"), 1),
            (ip("::"), 2),
            (ip("127.0.0.1"), 3),
            (ip("10.0.0.1"), 4),
        ];
        assert_eq!(accepting(&listeners, ip("127.0.0.1")), [3]);
        assert_eq!(accepting(&listeners, ip("127.0.0.2")), [1]);
        assert_eq!(accepting(&listeners, ip("::1")), [2]);
        assert_eq!(accepting(&listeners[1..2], ip("127.0.0.1")), [2]);
        assert_eq!(accepting(&listeners[3..], ip("127.0.0.1")), [0_u64; 0]);
    }

    #[test]
    fn two_processes_may_listen_on_one_address() {
        let listeners = [(ip("127.0.0.1"), 1), (ip("127.0.0.1"), 2)];
        assert_eq!(accepting(&listeners, ip("0.0.0.0")), [1, 2]);
    }
}
