//! A message from one version to another: datagrams of one client, as they came in one buffer.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use quinn::udp::{EcnCodepoint, RecvMeta};

/// The length of what stands before the datagrams.
pub(super) const HEAD_BYTES: usize = 44;

const IPV4: u8 = 4;
const IPV6: u8 = 6;

/// Returns the head of a message: the mark of congestion, the families of both addresses, the
/// length of each datagram but the last, port, client, local address, scope.
pub(super) fn head(meta: &RecvMeta) -> [u8; HEAD_BYTES] {
    let mut head = [0; HEAD_BYTES];
    // UDP has no datagram, and the system no buffer of several, beyond 64 KiB.
    let stride = u16::try_from(meta.stride).unwrap_or(u16::MAX);
    head[0] = meta.ecn.map_or(0, |ecn| ecn as u8);
    head[1] = write(meta.addr.ip(), &mut head[8..24]);
    head[2] = meta.dst_ip.map_or(0, |ip| write(ip, &mut head[24..40]));
    head[4..6].copy_from_slice(&stride.to_be_bytes());
    head[6..8].copy_from_slice(&meta.addr.port().to_be_bytes());
    if let SocketAddr::V6(address) = meta.addr {
        head[40..44].copy_from_slice(&address.scope_id().to_be_bytes());
    }
    head
}

/// Returns what a head says of `len` bytes of datagrams; `None` if it says nothing known.
pub(super) fn parse(head: &[u8; HEAD_BYTES], len: usize) -> Option<RecvMeta> {
    let (port, scope) = (
        u16::from_be_bytes([head[6], head[7]]),
        u32::from_be_bytes([head[40], head[41], head[42], head[43]]),
    );
    let addr = match read(head[1], &head[8..24])? {
        IpAddr::V4(ip) => SocketAddr::from((ip, port)),
        IpAddr::V6(ip) => std::net::SocketAddrV6::new(ip, port, 0, scope).into(),
    };
    Some(RecvMeta {
        addr,
        len,
        stride: usize::from(u16::from_be_bytes([head[4], head[5]])),
        ecn: EcnCodepoint::from_bits(head[0]),
        dst_ip: read(head[2], &head[24..40]),
    })
}

fn write(ip: IpAddr, to: &mut [u8]) -> u8 {
    match ip {
        IpAddr::V4(ip) => {
            to[..4].copy_from_slice(&ip.octets());
            IPV4
        }
        IpAddr::V6(ip) => {
            to.copy_from_slice(&ip.octets());
            IPV6
        }
    }
}

fn read(family: u8, from: &[u8]) -> Option<IpAddr> {
    match family {
        IPV4 => Some(Ipv4Addr::new(from[0], from[1], from[2], from[3]).into()),
        IPV6 => <[u8; 16]>::try_from(from)
            .ok()
            .map(|octets| Ipv6Addr::from(octets).into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_can_be_read() {
        let cases = [
            ("127.0.0.1:443", Some("127.0.0.2"), None),
            ("[fe80::1%7]:50000", Some("::1"), Some(EcnCodepoint::Ce)),
            ("[::ffff:192.0.2.1]:1", None, Some(EcnCodepoint::Ect0)),
        ];
        for (addr, dst_ip, ecn) in cases {
            let meta = RecvMeta {
                addr: addr.parse().expect(addr),
                len: 3_000,
                stride: 1_472,
                ecn,
                dst_ip: dst_ip.map(|ip| ip.parse().expect(ip)),
            };
            let read = parse(&head(&meta), meta.len).expect("it is one of ours");
            assert_eq!(format!("{read:?}"), format!("{meta:?}"));
        }
        assert!(parse(&[0; HEAD_BYTES], 10).is_none());
    }
}
