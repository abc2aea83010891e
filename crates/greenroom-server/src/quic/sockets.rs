//! The UDP sockets of a server: bound, or taken over together with the ways to the versions before.

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::PORTS_TRIED;
use super::routes::{Key, Route, Routes, is_dead, pair};
use super::socket::Socket;
use crate::listen::{self, Listener};
use crate::settings::Settings;
use crate::upgrade::{Handed, Kind, Named, Upgrades};
use crate::{Address, Error, Tls};

/// A UDP socket that is bound.
#[derive(Debug)]
pub(super) struct Bound {
    pub(super) udp: UdpSocket,
    pub(super) key: Key,
    /// The version before reads it, until this one serves.
    pub(super) is_taken_over: bool,
    pub(super) before: Vec<Route>,
    pub(super) next: Option<Next>,
}

/// The things that the next version gets for a UDP socket.
#[derive(Debug)]
pub(super) struct Next {
    udp: Arc<Handed>,
    /// The end of the pair by which it sends us what is ours.
    theirs: Arc<Handed>,
    ours: OwnedFd,
}

/// The reading of a socket when its version leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// No next version is to read it.
    Kept,
    /// The next version reads it.
    Left,
    /// The next version is to read it, and cannot yet.
    Owed,
}

impl Next {
    /// Leaves the reading of `socket` to the next version, if that is to read it.
    pub(super) fn take_over(&self, socket: &Socket) -> Reading {
        if !self.udp.is_taken() {
            return Reading::Kept;
        }
        if !self.theirs.is_taken() {
            return Reading::Owed;
        }
        let left = self.ours.try_clone().and_then(|pair| socket.leave(pair));
        match left {
            Ok(()) => {
                // So its end is the end of all who have it: the versions after this one.
                self.theirs.close();
                Reading::Left
            }
            Err(error) => {
                tracing::error!(%error, "the next version has to wait for the datagrams");
                Reading::Owed
            }
        }
    }
}

/// Binds the listeners of an address. Where the system chooses the port, it is one that is free for
/// UDP, too, if HTTP/3 is served.
pub(crate) fn listen(
    address: &Address,
    loops: usize,
    settings: &Settings,
) -> Result<Vec<Listener>, Error> {
    let backlog = settings.limits.backlog;
    let mut bound = listen::bind(address, loops, backlog)?;
    for _ in 1..PORTS_TRIED {
        if !settings.http3 || is_usable(address, &bound) {
            break;
        }
        bound = listen::bind(address, loops, backlog)?;
    }
    Ok(bound)
}

fn is_usable(asked: &Address, bound: &[Listener]) -> bool {
    match (asked, bound.first().map(|listener| &listener.address)) {
        (Address::Tcp(asked), Some(Address::Tcp(address))) if asked.port() == 0 => {
            UdpSocket::bind(address).is_ok()
        }
        _ => true,
    }
}

/// Returns the socket of an address: that of the version before, or a new one. It goes over to the
/// next version.
pub(super) fn socket(
    address: SocketAddr,
    tls: &Tls,
    upgrades: &mut Option<(&Upgrades, &mut Vec<Arc<Handed>>)>,
) -> Result<Bound, Error> {
    let key = Key::random(tls)?;
    let Some((upgrades, handed)) = upgrades else {
        return Ok(Bound {
            udp: bind(address)?,
            key,
            is_taken_over: false,
            before: Vec::new(),
            next: None,
        });
    };
    let taken = upgrades.take_udp(&address.into());
    let is_taken_over = taken.is_some();
    let udp = taken.map_or_else(|| bind(address), |socket| Ok(socket.into()))?;
    let over = Over {
        upgrades,
        handed,
        address,
    };
    over.all(udp, key, is_taken_over)
        .map_err(|source| Error::BindUdp {
            address: address.into(),
            source,
        })
}

fn bind(address: SocketAddr) -> Result<UdpSocket, Error> {
    let bound = UdpSocket::bind(address).and_then(|socket| {
        socket.set_nonblocking(true)?;
        Ok(socket)
    });
    bound.map_err(|source| Error::BindUdp {
        address: address.into(),
        source,
    })
}

/// The sockets of an address that go over to the next version.
struct Over<'a> {
    upgrades: &'a Upgrades,
    handed: &'a mut Vec<Arc<Handed>>,
    address: SocketAddr,
}

impl Over<'_> {
    fn all(mut self, udp: UdpSocket, key: Key, is_taken_over: bool) -> std::io::Result<Bound> {
        let address = self.address.to_string();
        let over = self.add(Kind::Udp, address.clone(), &udp)?;
        let (ours, theirs) = pair()?;
        let theirs = self.add(Kind::Forward, format!("{address} {key}"), &theirs)?;
        let mut before = Vec::new();
        let routes = if is_taken_over {
            self.upgrades.take_routes(&address)
        } else {
            Vec::new()
        };
        for (text, to) in routes {
            // Versions that have ended are left out, or they would add up.
            if let (Ok(key), false) = (text.parse(), is_dead(&to)) {
                let handed = self.add(Kind::Forward, format!("{address} {text}"), &to)?;
                before.push(Route::new(key, to, handed));
            }
        }
        Ok(Bound {
            udp,
            key,
            is_taken_over,
            before,
            next: Some(Next {
                udp: over,
                theirs,
                ours,
            }),
        })
    }

    fn add(
        &mut self,
        kind: Kind,
        asked: String,
        socket: impl std::os::fd::AsFd,
    ) -> std::io::Result<Arc<Handed>> {
        let handed = self.upgrades.hand_over(kind, Named::only(asked), socket)?;
        self.handed.push(Arc::clone(&handed));
        Ok(handed)
    }
}

impl Bound {
    /// Begins to read and write. Belongs on the runtime that does.
    pub(super) fn open(self) -> std::io::Result<(Socket, Key, Option<Next>)> {
        let routes = Routes::new(self.key, self.before);
        Ok((Socket::new(self.udp, routes)?, self.key, self.next))
    }
}
