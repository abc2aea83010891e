//! The header of the PROXY protocol, which a proxy sends ahead of what its client sends. Source:
//! `doc/proxy-protocol.txt` of `HAProxy`, sections 2.1 (version 1, text) and 2.2 (version 2,
//! binary).

use std::net::SocketAddr;

use ppp::{v1, v2};

/// Bytes that a header of the PROXY protocol may have, with all that version 2 may tell beside the
/// addresses (TLVs), which is not looked at. A header of version 1 has at most 107.
pub const PROXY_HEADER_BYTES_MAX: usize = 4_096;

/// The longest header of version 1.
const V1_BYTES_MAX: usize = 107;
const V1_BEGIN: &[u8] = b"PROXY ";
const V1_END: &[u8] = b"\r\n";
/// Signature, version and command, family and transport, length.
const V2_BYTES_MIN: usize = 16;

/// A proxy's announcement of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Announced {
    /// The bytes that the header takes.
    pub(crate) length: usize,
    /// The address that connected to the proxy, and the one that it connected to. `None` if the
    /// connection is the proxy's own, such as a health check (`LOCAL`), or it does not tell
    /// (`UNKNOWN`, a Unix socket, a datagram).
    pub(crate) addresses: Option<(SocketAddr, SocketAddr)>,
}

/// A fault of the header that a connection begins with.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(crate) enum HeaderFault {
    #[error("it does not begin with a header of the PROXY protocol")]
    Missing,
    #[error("its header of the PROXY protocol is too long")]
    TooLong,
    #[error("its header of the PROXY protocol is malformed: {0}")]
    V1(#[from] v1::BinaryParseError),
    #[error("its header of the PROXY protocol is malformed: {0}")]
    V2(#[from] v2::ParseError),
}

/// Reads the header that a connection begins with; `None` if it is not there as a whole.
pub(crate) fn read(input: &[u8]) -> Result<Option<Announced>, HeaderFault> {
    if may_begin_with(input, V1_BEGIN) {
        read_v1(input)
    } else if may_begin_with(input, v2::PROTOCOL_PREFIX) {
        read_v2(input)
    } else {
        Err(HeaderFault::Missing)
    }
}

fn may_begin_with(input: &[u8], beginning: &[u8]) -> bool {
    let length = input.len().min(beginning.len());
    input[..length] == beginning[..length]
}

fn read_v1(input: &[u8]) -> Result<Option<Announced>, HeaderFault> {
    let input = &input[..input.len().min(V1_BYTES_MAX)];
    let mut windows = input.windows(V1_END.len());
    let Some(end) = windows.position(|window| window == V1_END) else {
        return match input.len() {
            V1_BYTES_MAX => Err(HeaderFault::TooLong),
            _ => Ok(None),
        };
    };
    let length = end + V1_END.len();
    let addresses = match v1::Header::try_from(&input[..length])?.addresses {
        v1::Addresses::Tcp4(ip) => Some((
            (ip.source_address, ip.source_port).into(),
            (ip.destination_address, ip.destination_port).into(),
        )),
        v1::Addresses::Tcp6(ip) => Some((
            (ip.source_address, ip.source_port).into(),
            (ip.destination_address, ip.destination_port).into(),
        )),
        v1::Addresses::Unknown => None,
    };
    Ok(Some(Announced { length, addresses }))
}

fn read_v2(input: &[u8]) -> Result<Option<Announced>, HeaderFault> {
    let Some(fixed) = input.first_chunk::<V2_BYTES_MIN>() else {
        return Ok(None);
    };
    let length = V2_BYTES_MIN + usize::from(u16::from_be_bytes([fixed[14], fixed[15]]));
    if length > PROXY_HEADER_BYTES_MAX {
        return Err(HeaderFault::TooLong);
    }
    let Some(input) = input.get(..length) else {
        return Ok(None);
    };
    let header = v2::Header::try_from(input)?;
    let is_told = header.command == v2::Command::Proxy && header.protocol == v2::Protocol::Stream;
    let addresses = match header.addresses {
        v2::Addresses::IPv4(ip) => Some((
            (ip.source_address, ip.source_port).into(),
            (ip.destination_address, ip.destination_port).into(),
        )),
        v2::Addresses::IPv6(ip) => Some((
            (ip.source_address, ip.source_port).into(),
            (ip.destination_address, ip.destination_port).into(),
        )),
        v2::Addresses::Unix(_) | v2::Addresses::Unspecified => None,
    };
    Ok(Some(Announced {
        length,
        addresses: addresses.filter(|_| is_told),
    }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const V4: &[u8] = &[203, 0, 113, 7, 192, 0, 2, 1, 0x12, 0x67, 0x01, 0xbb];

    fn v2_header(command: u8, family: u8, payload: &[u8]) -> Vec<u8> {
        let length = u16::try_from(payload.len()).expect("a short header");
        let mut header = v2::PROTOCOL_PREFIX.to_vec();
        header.extend([command, family]);
        header.extend(length.to_be_bytes());
        header.extend(payload);
        header
    }

    /// Returns the addresses that are announced, `own` if none are.
    fn announced(header: &[u8]) -> String {
        for end in 0..header.len() {
            assert_eq!(read(&header[..end]), Ok(None), "{end} of {header:?}");
        }
        let whole = read(header).expect("it is well-formed");
        let whole = whole.expect("it is complete");
        assert_eq!(whole.length, header.len());
        let with_more = [header, b"GET / HTTP/1.1\r\n\r\n"].concat();
        assert_eq!(read(&with_more), Ok(Some(whole)));
        match whole.addresses {
            Some((source, destination)) => format!("{source} {destination}"),
            None => "own".to_owned(),
        }
    }

    #[test]
    fn version_1_is_a_line() {
        for (header, expected) in [
            (
                "TCP4 203.0.113.7 192.0.2.1 4711 443",
                "203.0.113.7:4711 192.0.2.1:443",
            ),
            (
                "TCP6 2001:db8::1 ::1 4711 443",
                "[2001:db8::1]:4711 [::1]:443",
            ),
            ("UNKNOWN", "own"),
            ("UNKNOWN 2001:db8::1 ::1 4711 443", "own"),
        ] {
            let header = format!("PROXY {header}\r\n");
            assert_eq!(announced(header.as_bytes()), expected, "{header}");
        }
    }

    #[test]
    fn version_2_is_binary() {
        let v6 = [
            &[0x20, 1, 0xd, 0xb8][..],
            &[0; 11],
            &[1; 17],
            &[0, 80, 1, 187],
        ]
        .concat();
        let with_tlv = [V4, &[4, 0, 1, 42]].concat();
        let most = [
            V4,
            &vec![0; PROXY_HEADER_BYTES_MAX - V2_BYTES_MIN - V4.len()],
        ]
        .concat();
        let told = "203.0.113.7:4711 192.0.2.1:443";
        for (command, family, payload, expected) in [
            (0x21, 0x11, V4, told),
            (0x21, 0x11, &with_tlv, told),
            (0x21, 0x11, &most, told),
            (
                0x21,
                0x21,
                &v6,
                "[2001:db8::1]:80 [101:101:101:101:101:101:101:101]:443",
            ),
            (0x20, 0x11, V4, "own"),
            (0x20, 0x00, &[], "own"),
            (0x21, 0x00, &[], "own"),
            (0x21, 0x31, &[0; 216], "own"),
            (0x21, 0x12, V4, "own"),
        ] {
            let header = v2_header(command, family, payload);
            assert_eq!(announced(&header), expected, "{command:x} {family:x}");
        }
    }

    #[test]
    fn what_is_no_header_is_refused_as_soon_as_it_is_seen() {
        for input in [
            &b"G"[..],
            b"GET / HTTP/1.1\r\n",
            b"PROXX",
            b"\r\n\r\nG",
            b"\x16\x03\x01",
        ] {
            assert_eq!(read(input), Err(HeaderFault::Missing), "{input:?}");
        }
        let endless = [b"PROXY ", &[b'a'; V1_BYTES_MAX][..]].concat();
        assert_eq!(read(&endless), Err(HeaderFault::TooLong));
        let long = v2_header(0x21, 0x11, &[0; PROXY_HEADER_BYTES_MAX]);
        assert_eq!(read(&long[..V2_BYTES_MIN]), Err(HeaderFault::TooLong));
        for line in [
            "TCP4 203.0.113.7 192.0.2.1 4711",
            "TCP4 203.0.113.7 192.0.2.1 4711 65536",
            "TCP4 203.0.113.7 192.0.2.1 04711 443",
            "TCP4 203.0.113.7 192.0.2.1 4711 443 5",
            "TCP4 2001:db8::1 ::1 4711 443",
            "TCP4  203.0.113.7 192.0.2.1 4711 443",
            "TCP5 203.0.113.7 192.0.2.1 4711 443",
            "",
        ] {
            let header = format!("PROXY {line}\r\n");
            let fault = read(header.as_bytes());
            assert!(
                matches!(fault, Err(HeaderFault::V1(_))),
                "{header} {fault:?}"
            );
        }
        for (command, family, payload) in [
            (0x11, 0x11, V4),
            (0x22, 0x11, V4),
            (0x21, 0x41, V4),
            (0x21, 0x13, V4),
            (0x21, 0x21, V4),
        ] {
            let fault = read(&v2_header(command, family, payload));
            assert!(
                matches!(fault, Err(HeaderFault::V2(_))),
                "{command:x} {family:x} {fault:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn whatever_comes_is_read_or_refused(command: u8, family: u8, rest: Vec<u8>, cut: u8) {
            let mut header = v2_header(command, family, &rest);
            header.truncate(header.len().saturating_sub(cut.into()));
            let _read = read(&header);
            let _read = read(&[b"PROXY ", &rest[..], b"\r\n"].concat());
            let _read = read(&rest);
        }
    }
}
