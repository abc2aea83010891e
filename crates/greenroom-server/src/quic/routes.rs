//! The ways to the versions before this one that still have connections.

use std::fmt;
use std::io::{self, IoSlice};
use std::num::ParseIntError;
use std::os::fd::{AsFd, OwnedFd};
use std::str::FromStr;
use std::sync::Arc;

use quinn::ConnectionId;
use quinn::udp::RecvMeta;
use quinn_proto::{ConnectionIdGenerator, HashedConnectionIdGenerator};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::set_socket_send_buffer_size;
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendFlags, SocketFlags, SocketType, sendmsg, socketpair,
};

use super::message;
use crate::upgrade::Handed;
use crate::{Tls, TlsError};

/// Bytes of datagrams that wait for a version that drains, as the system counts them; it takes the
/// number twice, and no more than `net.core.wmem_max` allows.
const FORWARDED_BYTES_MAX: usize = 212_992;
/// The length of our connection ids.
const ID_BYTES: usize = 8;

/// The key of a version, of which it makes its connection ids, and by which they are known.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Key(u64);

impl Key {
    pub(super) fn random(tls: &Tls) -> Result<Self, TlsError> {
        let mut bytes = [0; 8];
        let random = tls.config().crypto_provider().secure_random;
        random.fill(&mut bytes).map_err(rustls::Error::from)?;
        Ok(Self(u64::from_ne_bytes(bytes)))
    }

    pub(super) fn generator(self) -> HashedConnectionIdGenerator {
        HashedConnectionIdGenerator::from_key(self.0)
    }

    fn made(self, id: &ConnectionId) -> bool {
        self.generator().validate(id).is_ok()
    }
}

impl fmt::Display for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:016x}", self.0)
    }
}

impl FromStr for Key {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        u64::from_str_radix(text, 16).map(Self)
    }
}

/// It is nobody's business in a log.
impl fmt::Debug for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Key(..)")
    }
}

/// Returns the id of the connection that a datagram belongs to, which may be one that the client
/// chose; `None` if it has not the length of ours. All packets of a datagram have the same (RFC
/// 9000, 12.2), and where it stands is the same in all versions of QUIC (RFC 8999, 5).
fn destination(datagram: &[u8]) -> Option<ConnectionId> {
    const LONG: u8 = 0x80;
    let id = match datagram.first()? & LONG {
        0 => datagram.get(1..=ID_BYTES)?,
        _ if usize::from(*datagram.get(5)?) == ID_BYTES => datagram.get(6..6 + ID_BYTES)?,
        _ => return None,
    };
    Some(ConnectionId::new(id))
}

/// A pair of sockets over which the next version sends this one the datagrams of its connections:
/// our end, and the one that goes over. A message arrives whole, and the end of the other side is
/// seen on both.
pub(super) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let (kind, flags) = (
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
    );
    let (ours, theirs) = socketpair(AddressFamily::UNIX, kind, flags, None)?;
    set_socket_send_buffer_size(&theirs, FORWARDED_BYTES_MAX)?;
    Ok((ours, theirs))
}

/// A version before this one.
#[derive(Debug)]
pub(super) struct Route {
    key: Key,
    to: OwnedFd,
    /// The same descriptor, for the next version.
    handed: Arc<Handed>,
}

impl Route {
    pub(super) fn new(key: Key, to: OwnedFd, handed: Arc<Handed>) -> Self {
        Self { key, to, handed }
    }
}

/// Returns `true` if there is nobody any more at the other end.
pub(super) fn is_dead(to: &OwnedFd) -> bool {
    let mut polled = [PollFd::new(to, PollFlags::empty())];
    let polls = poll(&mut polled, Some(&Timespec::default()));
    polls.is_ok() && polled[0].revents().contains(PollFlags::HUP)
}

/// The versions before this one, by the ids of their connections.
#[derive(Debug)]
pub(super) struct Routes {
    ours: Key,
    before: Vec<Route>,
}

impl Routes {
    pub(super) fn new(ours: Key, before: Vec<Route>) -> Self {
        Self { ours, before }
    }

    /// Sends what is for the versions before to them, and leaves the rest in the buffer, of which
    /// `meta` tells.
    pub(super) fn sort(&mut self, buffer: &mut [u8], meta: &mut RecvMeta) {
        if self.before.is_empty() {
            return;
        }
        let (len, stride) = (meta.len, meta.stride.max(1));
        let (mut at, mut kept) = (0, 0);
        while at < len {
            let route = self.route(&buffer[at..len.min(at + stride)]);
            let mut end = at + stride;
            while end < len && self.route(&buffer[end..len.min(end + stride)]) == route {
                end += stride;
            }
            let end = end.min(len);
            let is_sent = route.is_some_and(|route| self.send(route, meta, &buffer[at..end]));
            if !is_sent {
                // Only the last datagram may be shorter, and it stays the last.
                buffer.copy_within(at..end, kept);
                kept += end - at;
            }
            at = end;
        }
        meta.len = kept;
    }

    /// Returns whose a datagram is, by index; `None` if it is ours, or a new client's.
    fn route(&self, datagram: &[u8]) -> Option<usize> {
        let id = destination(datagram).filter(|id| !self.ours.made(id))?;
        self.before.iter().position(|route| route.key.made(&id))
    }

    /// Sends datagrams to the version `index`; `false` if it has ended. What it has no room for is
    /// lost, as on any way: clients send it again (RFC 9002, 6).
    fn send(&mut self, index: usize, meta: &RecvMeta, datagrams: &[u8]) -> bool {
        let route = &self.before[index];
        let head = message::head(meta);
        let parts = [IoSlice::new(&head), IoSlice::new(datagrams)];
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        let sent = sendmsg(
            route.to.as_fd(),
            &parts,
            &mut SendAncillaryBuffer::default(),
            flags,
        );
        if matches!(sent, Err(Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN)) {
            let ended = self.before.remove(index);
            ended.handed.close();
            return false;
        }
        let outcome = if sent.is_ok() { "sent" } else { "dropped" };
        let count = datagrams.len().div_ceil(meta.stride.max(1));
        metrics::counter!("greenroom_quic_forwarded_total", "outcome" => outcome)
            .increment(count as u64);
        true
    }
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, IoSliceMut};

    use super::super::socket::receive;
    use super::*;

    /// A datagram of a connection, with a short header (RFC 8999, 5.2).
    fn datagram(key: Key, number: u8, length: usize) -> Vec<u8> {
        let id = key.generator().generate_cid();
        let mut datagram = vec![number; length];
        datagram[0] = 0x40;
        datagram[1..=ID_BYTES].copy_from_slice(&id);
        datagram
    }

    fn meta(datagrams: &[Vec<u8>]) -> (Vec<u8>, RecvMeta) {
        let buffer = datagrams.concat();
        let meta = RecvMeta {
            len: buffer.len(),
            stride: datagrams[0].len(),
            addr: ([127, 0, 0, 1], 1_000).into(),
            ..RecvMeta::default()
        };
        (buffer, meta)
    }

    /// A way to a version, and its other end.
    fn route(key: Key) -> (Route, OwnedFd) {
        let (theirs, to) = pair().expect("a pair");
        let handed = Handed::of_nobody(&to);
        (Route::new(key, to, handed), theirs)
    }

    /// Receives one message: what each of its datagrams is filled with.
    fn received(from: &OwnedFd) -> std::io::Result<(RecvMeta, Vec<u8>)> {
        let mut buffer = vec![0; 70_000];
        let mut metas = [RecvMeta::default()];
        let count = receive(from, &mut [IoSliceMut::new(&mut buffer)], &mut metas)?;
        assert_eq!(count, 1);
        let [meta] = metas;
        let last = buffer[..meta.len].chunks(meta.stride);
        Ok((
            meta,
            last.map(|datagram| datagram[datagram.len() - 1]).collect(),
        ))
    }

    #[test]
    fn datagrams_of_one_buffer_go_to_their_versions_and_the_last_may_be_shorter() {
        let (ours, first, second) = (Key(1), Key(2), Key(3));
        let (to_first, at_first) = route(first);
        let (to_second, at_second) = route(second);
        let mut routes = Routes::new(ours, vec![to_second, to_first]);
        let mut new_client = vec![0; 100];
        // An Initial packet of a client that has chosen ten bytes.
        (new_client[0], new_client[5], new_client[99]) = (0xc0, 10, 7);
        let (mut buffer, mut meta) = meta(&[
            datagram(first, 0, 100),
            datagram(ours, 1, 100),
            datagram(first, 2, 100),
            datagram(first, 3, 100),
            datagram(second, 4, 100),
            new_client,
            datagram(ours, 6, 60),
        ]);
        routes.sort(&mut buffer, &mut meta);
        let kept: Vec<u8> = buffer[..meta.len]
            .chunks(meta.stride)
            .map(|datagram| datagram[datagram.len() - 1])
            .collect();
        assert_eq!((meta.len, kept), (260, vec![1, 7, 6]));
        let (one, fill) = received(&at_first).expect("it came");
        assert_eq!((one.addr, one.stride, fill), (meta.addr, 100, vec![0]));
        assert_eq!(received(&at_first).expect("it came").1, [2, 3]);
        assert_eq!(received(&at_second).expect("it came").1, [4]);
        let nothing = received(&at_first).expect_err("that was all");
        assert_eq!(nothing.kind(), ErrorKind::WouldBlock);
    }

    #[test]
    fn a_version_that_takes_nothing_holds_up_nobody_and_one_that_has_ended_is_forgotten() {
        let (ours, before) = (Key(1), Key(2));
        let (to, at) = route(before);
        let mut routes = Routes::new(ours, vec![to]);
        for _ in 0..10_000 {
            let (mut buffer, mut meta) = meta(&[datagram(before, 0, 1_200)]);
            routes.sort(&mut buffer, &mut meta);
            assert_eq!(meta.len, 0);
        }
        let mut came = 0;
        while received(&at).is_ok() {
            came += 1;
        }
        assert!((10..1_000).contains(&came), "{came}");
        drop(at);
        let (mut buffer, mut meta) = meta(&[datagram(before, 0, 1_200)]);
        routes.sort(&mut buffer, &mut meta);
        assert_eq!((meta.len, routes.before.len()), (1_200, 0));
    }

    #[test]
    fn the_end_of_a_version_is_seen() {
        let (theirs, to) = pair().expect("a pair");
        assert!(!is_dead(&to));
        drop(theirs);
        assert!(is_dead(&to));
    }

    #[test]
    fn what_is_too_short_for_an_id_is_nobodys() {
        for datagram in [
            &[][..],
            &[0x40; 8],
            &[0xc0; 5],
            &[0xc0, 0, 0, 0, 1, 8, 1, 2],
        ] {
            assert!(destination(datagram).is_none(), "{datagram:?}");
        }
        let id = ConnectionId::new(&[7; ID_BYTES]);
        let long = [&[0xc0, 0, 0, 0, 1, 8][..], &[7; ID_BYTES]].concat();
        assert_eq!(destination(&long), Some(id));
        assert_eq!(destination(&[&[0x40][..], &[7; 20]].concat()), Some(id));
    }
}
