//! The listeners of a server: those that were passed on, those that are handed over by the version
//! before, and those that are bound.

use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::listen::{self, Borrowed, InheritedSocket, Listener, ListenerSocket};
#[cfg(feature = "http3")]
use crate::quic;
use crate::settings::{Settings, Speaks};
use crate::upgrade::{Handed, Kind, Named, Upgrades};
use crate::{Address, Error};

/// The listeners of each address.
pub(crate) type Bound = Vec<Vec<Listener>>;

/// Time in which the service manager closes a stored socket, once it is told to.
const FREED_TIMEOUT: Duration = Duration::from_secs(5);
/// The interval in which is looked whether it has.
const LOOK: Duration = Duration::from_millis(5);

/// The binding of a server's addresses.
pub(crate) struct Binding<'a> {
    loops: usize,
    settings: &'a Settings,
    upgrades: Option<&'a Upgrades>,
    /// The sockets that go over to the next version.
    pub(crate) handed: Vec<Arc<Handed>>,
    /// Addresses, the first ones, whose sockets others have, too.
    pub(crate) inherited: usize,
}

impl<'a> Binding<'a> {
    pub(crate) fn new(
        loops: usize,
        settings: &'a Settings,
        upgrades: Option<&'a Upgrades>,
    ) -> Self {
        Self {
            loops,
            settings,
            upgrades,
            handed: Vec::new(),
            inherited: 0,
        }
    }

    /// Returns the listeners of all addresses: of those that others have too, those that were bound
    /// elsewhere, and those that are named.
    pub(crate) fn all(
        &mut self,
        mut inherited: Vec<(InheritedSocket, bool)>,
        listeners: Vec<ListenerSocket>,
        addresses: &[(Address, Speaks)],
    ) -> Result<Bound, Error> {
        let mut named = Vec::new();
        for ((address, speaks), (key, sockets)) in addresses.iter().zip(self.taken(addresses)) {
            let mut of_address = self.bind(address, &key, sockets)?;
            for listener in &mut of_address {
                listener.is_proxied = *speaks == Speaks::Proxied;
                listener.security = self.settings.security(*speaks);
            }
            named.push(of_address);
        }
        // What was passed on and is not named.
        inherited.extend(self.passed()?);
        self.inherited = inherited.len();
        let mut bound = Vec::new();
        for (socket, is_proxied) in inherited {
            bound.push(vec![self.inherit(socket, is_proxied)?]);
        }
        for listener in listeners {
            bound.push(self.adopt(listener)?);
        }
        for listener in bound.iter_mut().flatten() {
            listener.security = self.settings.security(Speaks::Default);
        }
        bound.extend(named);
        Ok(bound)
    }

    /// Returns the listener of a socket that others have, too.
    fn inherit(&mut self, socket: InheritedSocket, is_proxied: bool) -> Result<Listener, Error> {
        let address = socket.address();
        let listener = socket.listen();
        let mut listener = listener.map_err(|source| Error::Bind {
            address: address.clone(),
            source,
        })?;
        listener.is_proxied = is_proxied;
        if self.upgrades.is_some_and(Upgrades::is_next_version) {
            listener.borrowed = Some(Borrowed::default());
        }
        let kind = if is_proxied {
            Kind::PassedProxied
        } else {
            Kind::Passed
        };
        self.hand_over(
            kind,
            &address,
            Named::only(address.to_string()),
            &mut listener,
        )?;
        Ok(listener)
    }

    /// Returns the listeners of one that the caller bound. It does not go over: the program that
    /// binds it would do so in the next version, too.
    fn adopt(&self, listener: ListenerSocket) -> Result<Vec<Listener>, Error> {
        let address = listener.address();
        let backlog = self.settings.limits.backlog;
        let adopted = listen::adopt(listener, self.loops, backlog);
        adopted.map_err(|source| Error::Bind { address, source })
    }

    /// Returns the sockets that the starter of the first version passed on.
    fn passed(&self) -> Result<Vec<(InheritedSocket, bool)>, Error> {
        let passed = self.upgrades.map(Upgrades::take_passed);
        Ok(passed
            .transpose()
            .map_err(Error::Upgrade)?
            .unwrap_or_default())
    }

    /// Returns the sockets that the version before had for each address. What was asked for in the
    /// same way comes first; of an address that speaks something else now, the sockets stay.
    fn taken(&self, addresses: &[(Address, Speaks)]) -> Vec<(Named, Vec<OwnedFd>)> {
        let exactly = Named::all(addresses).into_iter().map(|named| {
            let sockets = self.upgrades.map(|upgrades| upgrades.take(&named));
            (named, sockets.unwrap_or_default())
        });
        let mut taken: Vec<_> = exactly.collect();
        if let Some(upgrades) = self.upgrades {
            for (named, sockets) in &mut taken {
                if sockets.is_empty() {
                    *sockets = upgrades.take_any(named);
                }
            }
        }
        taken
    }

    /// Returns the listeners of an address: those of the version before, or new ones.
    fn bind(
        &mut self,
        address: &Address,
        named: &Named,
        sockets: Vec<OwnedFd>,
    ) -> Result<Vec<Listener>, Error> {
        let mut listeners = if sockets.is_empty() {
            self.bind_anew(address)?
        } else {
            let backlog = self.settings.limits.backlog;
            let taken = listen::take_over(address, sockets, self.loops, backlog);
            taken.map_err(|source| Error::Bind {
                address: address.clone(),
                source,
            })?
        };
        for listener in &mut listeners {
            self.hand_over(Kind::Bound, address, named.clone(), listener)?;
        }
        Ok(listeners)
    }

    /// Binds; stored sockets that nobody has taken give way.
    fn bind_anew(&self, address: &Address) -> Result<Vec<Listener>, Error> {
        let begin = Instant::now();
        let mut bound = self.try_bind(address);
        let is_freed = is_in_use(&bound) && self.upgrades.is_some_and(|each| each.free(address));
        while is_freed && is_in_use(&bound) && begin.elapsed() < FREED_TIMEOUT {
            thread::sleep(LOOK);
            bound = self.try_bind(address);
        }
        bound
    }

    fn try_bind(&self, address: &Address) -> Result<Vec<Listener>, Error> {
        #[cfg(feature = "http3")]
        return quic::listen(address, self.loops, self.settings);
        #[cfg(not(feature = "http3"))]
        return listen::bind(address, self.loops, self.settings.limits.backlog);
    }

    fn hand_over(
        &mut self,
        kind: Kind,
        address: &Address,
        named: Named,
        listener: &mut Listener,
    ) -> Result<(), Error> {
        if let Some(upgrades) = self.upgrades {
            let handed = upgrades.hand_over(kind, named, &*listener);
            let handed = handed.map_err(|source| Error::Bind {
                address: address.clone(),
                source,
            })?;
            listener.handed = Some(Arc::clone(&handed));
            self.handed.push(handed);
        }
        Ok(())
    }
}

fn is_in_use(bound: &Result<Vec<Listener>, Error>) -> bool {
    matches!(bound, Err(Error::Bind { source, .. }) if source.kind() == ErrorKind::AddrInUse)
}

/// Gives each loop its listeners. Those of an address that are more than the loops go on from the
/// first.
pub(crate) fn deal(bound: Bound, loops: usize) -> Vec<Vec<Listener>> {
    let mut dealt: Vec<Vec<Listener>> = (0..loops).map(|_| Vec::new()).collect();
    for of_address in bound {
        for (index, listener) in of_address.into_iter().enumerate() {
            dealt[index % loops].push(listener);
        }
    }
    dealt
}
