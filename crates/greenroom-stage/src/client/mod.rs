//! Clients, between which stages are fair.

mod key;

pub use key::{ClientKey, KeyOfClient};

use std::cell::Cell;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::marker::PhantomData;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::LazyLock;

use axum::extract::ConnectInfo;
use http::Extensions;
use serde::{Serialize, Serializer};

/// The number of leading bits of an IPv6 address that identify a client: homes and phones are given
/// whole networks.
pub const IPV6_CLIENT_BITS: u8 = 64;

/// The number of bytes of a name that are kept for display; clients are compared by all of it.
pub const NAME_BYTES_SHOWN: usize = 30;

/// The client of a request: an address, a name that the application gives (a user, a tenant, a
/// key), or unknown. All unknown clients share what one client gets.
///
/// Two clients are equal if their [`key`](Self::key) is, a hash that no outsider can predict.
///
/// A client that is known by a name may have the [address of its sender](Self::sender) beside it.
#[derive(Clone, Copy)]
pub struct Client {
    key: u64,
    shown: Shown,
    sender: Option<Sender>,
}

#[derive(Clone, Copy)]
struct Sender {
    address: IpAddr,
    /// 0 if unknown.
    port: u16,
}

#[derive(Clone, Copy)]
enum Shown {
    Address(IpAddr),
    Name {
        length: u8,
        bytes: [u8; NAME_BYTES_SHOWN],
    },
    Nobody,
}

thread_local! {
    static CURRENT: Cell<Client> = const { Cell::new(Client::UNKNOWN) };
}

static HASHES: LazyLock<RandomState> = LazyLock::new(RandomState::new);

impl Client {
    /// The unknown client.
    pub const UNKNOWN: Self = Self {
        key: 0,
        shown: Shown::Nobody,
        sender: None,
    };

    /// The client at this address; for IPv6, the client of its network of 64 bits.
    #[must_use]
    pub fn at(address: IpAddr) -> Self {
        Self {
            key: HASHES.hash_one(network(address)),
            shown: Shown::Address(address),
            sender: Some(Sender { address, port: 0 }),
        }
    }

    /// Returns this client with the sender's address of `other`.
    #[must_use]
    pub fn sent_as_by(self, other: Self) -> Self {
        Self {
            sender: other.sender,
            ..self
        }
    }

    /// The client of this name, which can be any string that tells one client from another.
    #[must_use]
    pub fn named(name: &str) -> Self {
        let mut bytes = [0; NAME_BYTES_SHOWN];
        let length = name.floor_char_boundary(NAME_BYTES_SHOWN);
        bytes[..length].copy_from_slice(&name.as_bytes()[..length]);
        Self {
            key: HASHES.hash_one(name),
            shown: Shown::Name {
                length: u8::try_from(length).unwrap_or_default(),
                bytes,
            },
            sender: None,
        }
    }

    /// A client whose key is the same in each run of a test.
    #[cfg(test)]
    pub(crate) fn numbered(number: u64) -> Self {
        Self {
            key: number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15),
            shown: Shown::Nobody,
            sender: None,
        }
    }

    /// Returns the client for which the calling thread works at the moment, as set by
    /// [`within`](Self::within).
    #[must_use]
    pub fn current() -> Self {
        CURRENT.get()
    }

    /// Returns the client for which this thread works, or else the address that is connected, if
    /// the server gives it with the request.
    pub(crate) fn connected(extensions: &Extensions) -> Self {
        let current = Self::current();
        if current.is_known() {
            return current;
        }
        let peer = extensions.get::<ConnectInfo<SocketAddr>>();
        peer.map_or(current, |ConnectInfo(peer)| Self::from(*peer))
    }

    /// Runs `work` for this client: whatever it submits to a stage from this thread counts as this
    /// client's.
    pub fn within<R>(self, work: impl FnOnce() -> R) -> R {
        let _working = self.enter();
        work()
    }

    /// Runs `work` [within](Self::within) this client, unless the thread works for it already.
    pub(crate) fn within_if_another<R>(&self, work: impl FnOnce() -> R) -> R {
        let is_current = CURRENT.with(|current| current.get().key == self.key);
        let _working = (!is_current).then(|| self.enter());
        work()
    }

    /// Has the calling thread work for this client, as [`within`](Self::within), until the result
    /// is dropped; not over an `.await`, where the thread goes on with other work.
    pub fn enter(self) -> WorkingFor {
        let before = match Self::current() {
            Self {
                key: 0,
                sender: None,
                ..
            } => None,
            before => Some(before),
        };
        CURRENT.set(self);
        WorkingFor {
            before,
            _of_this_thread: PhantomData,
        }
    }

    /// The hash that tells this client from others, stable for the life of the process.
    #[must_use]
    pub fn key(self) -> u64 {
        self.key
    }

    /// The client's address, if it is known by its address.
    #[must_use]
    pub fn address(self) -> Option<IpAddr> {
        match self.shown {
            Shown::Address(address) => Some(address),
            Shown::Name { .. } | Shown::Nobody => None,
        }
    }

    /// The address that its request was sent from, if known; the port is 0 if unknown.
    #[must_use]
    pub fn sender(self) -> Option<SocketAddr> {
        let sender = self.sender?;
        Some(SocketAddr::new(sender.address, sender.port))
    }

    /// The network of its address: for IPv6 the first [`IPV6_CLIENT_BITS`] bits, which belong to
    /// one client.
    #[must_use]
    pub fn network(self) -> Option<IpAddr> {
        self.address().map(network)
    }

    /// True unless this is [`UNKNOWN`](Self::UNKNOWN).
    #[must_use]
    pub fn is_known(self) -> bool {
        !matches!(self.shown, Shown::Nobody)
    }
}

/// Returns the network that belongs to the client at this address.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => {
            let mask = u128::MAX << (128 - IPV6_CLIENT_BITS);
            Ipv6Addr::from_bits(address.to_bits() & mask).into()
        }
    }
}

/// The time in which a thread works for a [client](Client::enter). At its end the thread works for
/// the client before.
#[derive(Debug)]
#[must_use = "the thread works for the client until it is dropped"]
pub struct WorkingFor {
    /// `None` if it worked for nobody, as a thread mostly does: that is restored faster.
    before: Option<Client>,
    _of_this_thread: PhantomData<*const ()>,
}

impl Drop for WorkingFor {
    fn drop(&mut self) {
        match self.before {
            None => CURRENT.set(Client::UNKNOWN),
            Some(before) => CURRENT.set(before),
        }
    }
}

impl From<SocketAddr> for Client {
    /// The client [at](Client::at) the address of this socket.
    fn from(socket: SocketAddr) -> Self {
        Self {
            sender: Some(Sender {
                address: socket.ip(),
                port: socket.port(),
            }),
            ..Self::at(socket.ip())
        }
    }
}

impl PartialEq for Client {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Client {}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.shown {
            Shown::Address(address) => match network(*address) {
                network @ IpAddr::V4(_) => network.fmt(f),
                network @ IpAddr::V6(_) => write!(f, "{network}/{IPV6_CLIENT_BITS}"),
            },
            Shown::Name { length, bytes } => {
                f.write_str(&String::from_utf8_lossy(&bytes[..usize::from(*length)]))
            }
            Shown::Nobody => f.write_str("unknown"),
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client({self})")
    }
}

impl Serialize for Client {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(address: &str) -> Client {
        Client::at(address.parse().expect("an address"))
    }

    #[test]
    fn a_home_is_one_client_and_a_mapped_address_is_that_of_ipv4() {
        assert_eq!(at("2001:db8:1:2:3:4:5:6"), at("2001:db8:1:2:ffff::"));
        assert_ne!(at("2001:db8:1:2::"), at("2001:db8:1:3::"));
        assert_eq!(at("::ffff:192.0.2.1"), at("192.0.2.1"));
        assert_eq!(at("2001:db8:1:2:3::").to_string(), "2001:db8:1:2::/64");
    }

    #[test]
    fn a_client_with_a_name_has_an_address_all_the_same() {
        let socket: SocketAddr = "192.0.2.1:4711".parse().expect("an address");
        let client = Client::named("tenant").sent_as_by(socket.into());
        assert_eq!(client, Client::named("tenant"));
        assert_eq!((client.sender(), client.address()), (Some(socket), None));
    }

    #[test]
    fn long_names_are_told_apart_and_shown_in_part() {
        let name = |end: char| format!("{}é{end}", "x".repeat(29));
        let (a, b) = (Client::named(&name('a')), Client::named(&name('b')));
        assert_ne!(a, b);
        assert_eq!(a.to_string(), "x".repeat(29));
    }

    #[test]
    fn work_is_for_who_was_named_last_and_after_a_panic_for_who_was_before() {
        let inner = Client::named("inner");
        Client::named("outer").within(|| {
            let panicked = std::panic::catch_unwind(|| inner.within(|| panic!("on purpose")));
            assert!(panicked.is_err());
            assert_eq!(Client::current().to_string(), "outer");
        });
        assert!(!Client::current().is_known());
    }
}
