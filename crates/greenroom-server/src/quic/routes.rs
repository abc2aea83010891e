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
