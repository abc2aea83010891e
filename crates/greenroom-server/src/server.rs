//! A server: its listeners and its loops' threads.

use std::any::Any;
use std::borrow::Cow;
use std::io;
use std::net::TcpListener;
use std::num::NonZeroUsize;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::thread;

use http::Extensions;
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};

use crate::addresses::Addresses;
use crate::app::App;
use crate::binding::{Binding, deal};
use crate::challenges::Challenges;
use crate::descriptors::raise_descriptor_limit;
use crate::drain::Phase;
use crate::event_loop::{Balance, Loops, Member, run};
#[cfg(feature = "tls")]
use crate::listen::Security;
use crate::listen::{Accepted, Acceptor, InheritedSocket, Listener, ListenerSocket};
use crate::memory::Memory;
#[cfg(feature = "http3")]
use crate::quic::{self, Endpoints, Quic};
use crate::settings::{Settings, Speaks};
use crate::signals::shutdown_on_signals;
use crate::threads::start;
use crate::upgrade::{Part, Upgrades};
use crate::{
    Address, AddressError, DrainReport, Error, Handle, HasSettings, Limits, Rejection,
    RejectionBody, TrustedProxies,
};

/// Connections that wait in a loop's inbox after another loop accepted them.
const INBOX_MAX: usize = 1_024;

/// Settings of a [`Server`].
#[derive(Debug)]
pub struct ServerBuilder {
    addresses: Vec<(Address, Speaks)>,
    listeners: Vec<ListenerSocket>,
    /// Each with `true` if proxies announce their clients there.
    inherited: Vec<(InheritedSocket, bool)>,
    acceptors: Vec<Box<dyn Acceptor>>,
    may_be_without_address: bool,
    loops: NonZeroUsize,
    pub(crate) settings: Settings,
    upgrades: Option<Upgrades>,
    /// The first text that was no address.
    fault: Option<AddressError>,
}

impl Default for ServerBuilder {
    fn default() -> Self {
        Self {
            addresses: Vec::new(),
            listeners: Vec::new(),
            inherited: Vec::new(),
            acceptors: Vec::new(),
            may_be_without_address: false,
            loops: thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
            settings: Settings::default(),
            upgrades: None,
            fault: None,
        }
    }
}

impl ServerBuilder {
    /// Listens on `address`, and on those named before: an [`Address`], a `SocketAddr`, or a text
    /// such as `127.0.0.1:5000`, `[::1]:5000` or `unix:/run/app.sock`. A text that is none of these
    /// is an error of [`bind`](Self::bind).
    #[must_use]
    pub fn listen<A>(self, address: A) -> Self
    where
        A: TryInto<Address, Error: Into<AddressError>>,
    {
        self.listen_on(address, Speaks::Default)
    }

    /// Listens on `address` too, for proxies that speak the PROXY protocol, as `HAProxy` does by
    /// `send-proxy` or `send-proxy-v2` and nginx by `proxy_protocol on`. Each connection begins
    /// with its header, of version 1 or 2, and is then the connection of the client that is
    /// announced, to the address that is announced: so says its
    /// [`ConnectionInfo`](crate::ConnectionInfo). One that is the proxy's own (`LOCAL`), or of
    /// which it does not tell (`UNKNOWN`), stays what it is.
    ///
    /// A connection without the header is closed; the header must come within
    /// [`head_timeout`](Limits::head_timeout) and have at most
    /// [`PROXY_HEADER_BYTES_MAX`](crate::PROXY_HEADER_BYTES_MAX) bytes. If any proxies are
    /// [trusted](Self::trusted_proxies), only theirs are served; if none are, whoever reaches the
    /// address can say to be anybody.
    #[must_use]
    pub fn listen_proxied<A>(self, address: A) -> Self
    where
        A: TryInto<Address, Error: Into<AddressError>>,
    {
        self.listen_on(address, Speaks::Proxied)
    }

    /// Listens on `address` too, without TLS even if the server [has it](Self::tls): for health
    /// checks from this machine, or for clients that are sent on to `https`.
    #[must_use]
    pub fn listen_plain<A>(self, address: A) -> Self
    where
        A: TryInto<Address, Error: Into<AddressError>>,
    {
        self.listen_on(address, Speaks::Plain)
    }

    /// Listens on `address` too, without TLS, and sends clients on to the first address that has
    /// it: 308 for all requests but those below `/.well-known/acme-challenge/`, by which CAs
    /// ask whether a name is ours. Responses over TLS then tell browsers to come by `https` for
    /// a year (`Strict-Transport-Security: max-age=31536000`, [RFC
    /// 6797](https://www.rfc-editor.org/rfc/rfc6797)), unless the application says something else.
    #[must_use]
    pub fn listen_redirecting<A>(mut self, address: A) -> Self
    where
        A: TryInto<Address, Error: Into<AddressError>>,
    {
        self.settings.is_strict = true;
        self.listen_on(address, Speaks::Redirecting)
    }

    /// Responds to CAs that ask whether a name is ours (HTTP-01, [RFC
    /// 8555](https://www.rfc-editor.org/rfc/rfc8555), section 8.3), on the addresses of
    /// [`listen_redirecting`](Self::listen_redirecting): `respond` is called, on a loop, with the
    /// host and the path of a request below `/.well-known/acme-challenge/`, and returns the body,
    /// or nothing for 404. By default these requests go to the application.
    #[must_use]
    pub fn challenges<F>(mut self, respond: F) -> Self
    where
        F: Fn(&str, &str) -> Option<String> + Send + Sync + 'static,
    {
        self.settings.challenges = Challenges::new(respond);
        self
    }

    fn listen_on<A>(mut self, address: A, speaks: Speaks) -> Self
    where
        A: TryInto<Address, Error: Into<AddressError>>,
    {
        match address.try_into() {
            Ok(address) => self.addresses.push((address, speaks)),
            Err(error) => self.fault = self.fault.or(Some(error.into())),
        }
        self
    }

    /// Serves a listener that is already bound, too. With several loops its port is shared with
    /// listeners of the other loops, where the system allows it.
    #[must_use]
    pub fn listener(mut self, listener: TcpListener) -> Self {
        self.listeners.push(ListenerSocket::Tcp(listener));
        self
    }

    /// Serves a listener on a Unix socket that is already bound, too. Its file stays when the
    /// server ends.
    #[must_use]
    pub fn unix_listener(mut self, listener: UnixListener) -> Self {
        self.listeners.push(ListenerSocket::Unix(listener));
        self
    }

    /// Serves a listener that other processes have, too. It stays the only one of its port: its
    /// connections are shared out among the loops, and when this server ends, those that wait are
    /// left to the others. A socket's file stays when the server ends.
    #[must_use]
    pub fn inherited(mut self, socket: InheritedSocket) -> Self {
        self.inherited.push((socket, false));
        self
    }

    /// Like [`inherited`](Self::inherited), for proxies that speak the PROXY protocol, as with
    /// [`listen_proxied`](Self::listen_proxied).
    #[must_use]
    pub fn inherited_proxied(mut self, socket: InheritedSocket) -> Self {
        self.inherited.push((socket, true));
        self
    }

    /// Speaks TLS on all listeners but those of [`listen_plain`](Self::listen_plain) and of
    /// [acceptors](Self::acceptor). Whoever speaks HTTP without TLS there gets a 400 that says so.
    ///
    /// A handshake must be over within [`handshake_timeout`](Limits::handshake_timeout). Each of
    /// its steps is work, and a loop takes one in each of its turns: what is ready beside it waits
    /// for one at most. Those that have to wait for their first step take turns by address, as many
    /// as [`handshakes_max`](Limits::handshakes_max); one that would wait for longer than
    /// [`handshake_wait_max`](Limits::handshake_wait_max) is reset.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn tls(mut self, tls: crate::Tls) -> Self {
        self.settings.tls = Some(tls);
        self
    }

    /// Serves HTTP/3 (RFC 9114), too, at each address where TLS is spoken and clients come by
    /// themselves: not where proxies [announce](Self::listen_proxied) them, and not at
    /// [inherited](Self::inherited) sockets, whose address others have, too. Default: off.
    ///
    /// The address is bound for UDP by [`bind`](Self::bind). The certificates and the limits are
    /// those of the server, and responses over TLS tell clients of it (`Alt-Svc`, RFC 7838), unless
    /// the application says something else. One thread, `quic`, has all datagrams and handshakes;
    /// requests are served on the loops.
    ///
    /// Experimental: the library that speaks HTTP/3 calls itself so.
    #[cfg(feature = "http3")]
    #[must_use]
    pub fn http3(mut self, on: bool) -> Self {
        self.settings.http3 = on;
        self
    }

    /// Serves what `acceptor` accepts, too.
    #[must_use]
    pub fn acceptor(mut self, acceptor: impl Acceptor) -> Self {
        self.acceptors.push(Box::new(acceptor));
        self
    }

    /// Allows that there is no address: the server then takes no requests, and lasts until its
    /// [handle](Server::handle) ends it. For programs that work for others and not for clients.
    #[must_use]
    pub fn without_address(mut self) -> Self {
        self.may_be_without_address = true;
        self
    }

    /// Sets the number of loops, each on a thread of its own. Default: one for each core.
    #[must_use]
    pub fn loops(mut self, loops: NonZeroUsize) -> Self {
        self.loops = loops;
        self
    }

    /// Sets the name of the loops, to which each's number is added: `admin` names `admin-0`,
    /// `admin-1` and so on. Threads, metrics, the status and the log have it, so servers of one
    /// process should have different ones. Default: `loop`. Linux shows 15 bytes of the name of a
    /// thread.
    #[must_use]
    pub fn loops_named(mut self, name: &'static str) -> Self {
        self.settings.loops_named = Some(name);
        self
    }

    /// Sets the limits and time-outs. Default: [`Limits::default`].
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.settings.limits = limits;
        self
    }

    /// Responds to clients that end their side of the connection while their request is under way,
    /// however long it takes. Over TCP such a client cannot be told from one that has left. So by
    /// default (off) its request is dropped at once, unless the client ended its side within 250 to
    /// 500 ms of its request: then the response may take that long to begin, and its body goes on
    /// until it pauses for 20 ms. A client that reset its connection is dropped in any case.
    #[must_use]
    pub fn half_close(mut self, on: bool) -> Self {
        self.settings.half_close = on;
        self
    }

    /// Sets the proxies that are believed when they say for whom a request is: a request that one
    /// of them sent has [`ForwardedFor`](crate::ForwardedFor) in its extensions, and `client` in
    /// the access log. Default: none.
    #[must_use]
    pub fn trusted_proxies(mut self, proxies: TrustedProxies) -> Self {
        self.settings.trusted_proxies = proxies;
        self
    }

    /// Sets the body of each [`Rejection`]: of the responses that the server makes itself, and of
    /// those of the application that have a [`RejectionDetail`](crate::RejectionDetail). `None`
    /// leaves the default, which is a line of text (and nothing for connections that are rejected
    /// unread). The status, `Retry-After` and the framing are the server's.
    ///
    /// It is called on a loop, for rejections only, so it should return at once. Connections that
    /// are rejected unread (503 of a loop that is behind, 429 of an address with too many) all get
    /// the body that it returns for the first of each kind. Beyond
    /// [`REJECTION_BYTES_MAX`](crate::REJECTION_BYTES_MAX), and if it panics, the default is sent,
    /// and the log says so. An HTTP/2 stream that is reset has no response, and none is made here
    /// for the 431 of a header block beyond the limit, which hyper sends.
    #[must_use]
    pub fn rejection_body<F>(mut self, body: F) -> Self
    where
        F: Fn(&Rejection<'_>) -> Option<RejectionBody> + Send + Sync + 'static,
    {
        self.settings.rejections.set_bodies(body);
        self
    }

    /// Sets how a response of the application is found to be a rejection: the detail, by the
    /// response's extensions, or `None`. Default: by [`RejectionDetail`](crate::RejectionDetail).
    /// It is called for each response if there is a [`rejection_body`](Self::rejection_body).
    #[must_use]
    pub fn rejection_detail(
        mut self,
        detail: fn(&Extensions) -> Option<Cow<'static, str>>,
    ) -> Self {
        self.settings.rejections.find_detail = detail;
        self
    }

    /// Catches SIGTERM and SIGINT from when it begins to serve: the first one drains, a second
    /// one aborts (under `start_server` only SIGINT). Default: off.
    #[must_use]
    pub fn shutdown_on_signals(mut self) -> Self {
        self.settings.shutdown_on_signals = true;
        self
    }

    /// Takes part in the upgrades of the process: takes over the listening sockets of the version
    /// before, for each address as it was named, and hands its own over to the next version, which
    /// [`Upgrades::begin`] starts. What [`listener`](Self::listener), `unix_listener` and
    /// [`acceptor`](Self::acceptor) were given stays out of it. Default: none.
    #[must_use]
    pub fn upgrades(mut self, upgrades: &Upgrades) -> Self {
        self.upgrades = Some(upgrades.clone());
        self
    }

    /// Binds the addresses. Connections wait from now on, and are accepted when the server
    /// [serves](Server::serve).
    ///
    /// The process' soft limit on open descriptors is raised to the hard one, as Go programs do: it
    /// is low only for programs that use `select`, which cannot count beyond 1,024, and each
    /// connection takes a descriptor.
    ///
    /// # Errors
    ///
    /// [`Error::Address`] if a text is no address, [`Error::Limit`] if a limit is not allowed,
    /// [`Error::NoAddress`] if there is no address and [one is needed](Self::without_address),
    /// [`Error::Bind`] if one cannot be listened on; with HTTP/3, `Error::Http3WithoutTls` if there
    /// is no address for it, `Error::BindUdp` if one cannot be bound, and `Error::Http3` if the
    /// provider of the cryptography cannot serve it.
    pub fn bind(self) -> Result<Server, Error> {
        let upgrades = self.upgrades.clone();
        let bound = self.bind_all();
        if let (Err(error), Some(upgrades)) = (&bound, upgrades) {
            upgrades.fail(&error.to_string());
        }
        bound
    }

    fn bind_all(mut self) -> Result<Server, Error> {
        if let Some(fault) = self.fault {
            return Err(fault.into());
        }
        self.settings.limits.check()?;
        raise_descriptor_limit();
        let loops = self.loops.get();
        let mut binding = Binding::new(loops, &self.settings, self.upgrades.as_ref());
        let bound = binding.all(self.inherited, self.listeners, &self.addresses)?;
        #[cfg(feature = "http3")]
        let inherited = binding.inherited;
        #[cfg_attr(not(feature = "http3"), expect(unused_mut, reason = "for UDP sockets"))]
        let mut handed = binding.handed;
        self.settings.https_port = https_port(&bound);
        #[cfg(feature = "http3")]
        let quic = {
            let upgrades = self
                .upgrades
                .as_ref()
                .map(|upgrades| (upgrades, &mut handed));
            Quic::bind(&bound[inherited..], &mut self.settings, upgrades)?
        };
        let untaken_max = self.settings.limits.untaken_max();
        for listener in bound.iter().flatten() {
            listener.set_untaken_max(untaken_max);
        }
        let firsts = bound.iter().filter_map(|of_address| of_address.first());
        let listened = firsts.map(|listener| listener.address.clone());
        let accepted = self.acceptors.iter();
        let accepted = accepted.map(|acceptor| acceptor.local_address());
        let addresses: Vec<Address> = listened.chain(accepted).collect();
        if addresses.is_empty() && !self.may_be_without_address {
            return Err(Error::NoAddress);
        }
        let (phase, _) = watch::channel(Phase::Serving);
        let handle = Handle {
            phase: Arc::new(phase),
            loops: Arc::default(),
        };
        let timeout = self.settings.limits.upgrade_timeout;
        let part = self.upgrades;
        let part = part.map(|upgrades| upgrades.add(handle.clone(), handed, loops, timeout));
        Ok(Server {
            addresses,
            listeners: deal(bound, loops),
            acceptors: self.acceptors,
            settings: Arc::new(self.settings),
            part,
            #[cfg(feature = "http3")]
            quic,
            handle,
        })
    }
}

/// Returns the port of the first address with TLS.
fn https_port(bound: &[Vec<Listener>]) -> Option<u16> {
    #[cfg(feature = "tls")]
    return bound
        .iter()
        .flatten()
        .filter(|listener| listener.security == Security::Tls)
        .find_map(|listener| match &listener.address {
            Address::Tcp(address) => Some(address.port()),
            Address::Unix(_) => None,
        });
    #[cfg(not(feature = "tls"))]
    return bound.first().and(None);
}

/// A server that is bound to its addresses.
#[derive(Debug)]
pub struct Server {
    addresses: Vec<Address>,
    listeners: Vec<Vec<Listener>>,
    acceptors: Vec<Box<dyn Acceptor>>,
    settings: Arc<Settings>,
    /// There if sockets are handed over to the next version.
    part: Option<Arc<Part>>,
    #[cfg(feature = "http3")]
    quic: Option<Quic>,
    handle: Handle,
}

/// Ends the loops, and what waits for signals, if nobody waits for the server any more.
struct AbortOnDrop {
    server: Handle,
    signals: Option<JoinHandle<()>>,
    part: Option<Arc<Part>>,
}

impl AbortOnDrop {
    /// Tells the version before, if it still serves, why this one does not.
    fn settle(&self, ended: Result<DrainReport, Error>) -> Result<DrainReport, Error> {
        let Some(part) = &self.part else {
            return ended;
        };
        if let Err(error) = &ended {
            part.fail(&error.to_string());
        }
        part.wait_for_upgrade();
        match part.fault() {
            Some(fault) => Err(Error::Upgrade(io::Error::other(fault))),
            None => ended,
        }
    }
}

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.server.abort();
        if let Some(signals) = &self.signals {
            signals.abort();
        }
    }
}

impl Server {
    /// Returns a builder with the defaults.
    #[must_use]
    pub fn builder() -> ServerBuilder {
        ServerBuilder::default()
    }

    /// Returns the addresses that the server listens on, in the order in which the addresses were
    /// named; a port 0 is replaced by the port that the system chose.
    #[must_use]
    pub fn local_addresses(&self) -> &[Address] {
        &self.addresses
    }

    /// Returns the handle that ends this server.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Returns its limits and time-outs.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.settings.limits
    }

    /// Attaches a value for the server's handlers, which find it by their
    /// [`RequestHandle`](crate::RequestHandle::attached). A value that was attached before is
    /// replaced.
    pub fn attach(&mut self, value: Arc<dyn Any + Send + Sync>) {
        Arc::make_mut(&mut self.settings).attached = Some(value);
    }

    /// Serves `app` until the [handle](Self::handle) ends it. Needs no runtime of the caller,
    /// unless there are [acceptors](ServerBuilder::acceptor) or
    /// [signals](ServerBuilder::shutdown_on_signals) to catch; if the future is dropped, the server
    /// ends at once.
    ///
    /// # Errors
    ///
    /// [`Error::Signals`] if signals cannot be caught, [`Error::Start`] if a loop cannot be
    /// started, [`Error::LoopPanicked`] if one ended by a fault of ours.
    ///
    /// # Panics
    ///
    /// With [acceptors](ServerBuilder::acceptor) or signals, when polled outside a tokio runtime,
    /// and if an acceptor panics.
    pub async fn serve<A: App>(self, app: A) -> Result<DrainReport, Error> {
        let ended = self.abort_on_drop()?;
        let report = self.serve_on_threads(app).await;
        ended.settle(report)
    }

    async fn serve_on_threads<A: App>(self, app: A) -> Result<DrainReport, Error> {
        let Begun {
            members,
            accepting,
            #[cfg(feature = "http3")]
            endpoints,
        } = self.begin();
        #[cfg(feature = "http3")]
        let quic = endpoints.map(Endpoints::start).transpose();
        #[cfg(feature = "http3")]
        let quic = quic.map_err(Error::StartHttp3)?;
        let (tell, mut ended) = mpsc::channel(members.len());
        for member in members {
            start(app.clone(), member, tell.clone())?;
        }
        drop(tell);
        let loops = async {
            let mut report = DrainReport::default();
            while let Some(cut) = ended.recv().await {
                report.aborted.extend(cut?);
            }
            #[cfg(feature = "http3")]
            quic::end(quic).await;
            Ok(report)
        };
        with_acceptors(accepting, loops).await
    }

    /// Serves `app` with all loops on the calling thread, whose runtime must be able to
    /// `spawn_local`: a `LocalRuntime`, or a `LocalSet` on a current-thread runtime. For programs
    /// that own their thread, and for tests, which so can pause the clock.
    ///
    /// # Errors
    ///
    /// [`Error::Start`] if a listener cannot be registered with the runtime.
    ///
    /// # Panics
    ///
    /// When polled outside such a runtime, and if an [acceptor](ServerBuilder::acceptor) panics.
    pub async fn serve_local<A: App>(self, app: A) -> Result<DrainReport, Error> {
        let ended = self.abort_on_drop()?;
        let report = self.serve_here(app).await;
        ended.settle(report)
    }

    async fn serve_here<A: App>(self, app: A) -> Result<DrainReport, Error> {
        let Begun {
            members,
            accepting,
            #[cfg(feature = "http3")]
            endpoints,
        } = self.begin();
        #[cfg(feature = "http3")]
        let quic = endpoints.map(Endpoints::start_local);
        let running: Vec<_> = members
            .into_iter()
            .map(|member| {
                let index = member.index;
                (index, tokio::task::spawn_local(run(app.clone(), member)))
            })
            .collect();
        let loops = async {
            let mut report = DrainReport::default();
            for (index, ended) in running {
                let cut = ended.await.map_err(|_| Error::LoopPanicked { index })?;
                let cut = cut.map_err(|source| Error::Start { index, source })?;
                report.aborted.extend(cut);
            }
            #[cfg(feature = "http3")]
            quic::end(quic).await;
            Ok(report)
        };
        with_acceptors(accepting, loops).await
    }

    fn abort_on_drop(&self) -> Result<AbortOnDrop, Error> {
        let signals = self.settings.shutdown_on_signals;
        let signals = signals.then(|| shutdown_on_signals(self.handle()));
        Ok(AbortOnDrop {
            server: self.handle(),
            signals: signals.transpose().map_err(Error::Signals)?,
            part: self.part.clone(),
        })
    }

    fn begin(self) -> Begun {
        let loops = self.listeners.len();
        let balance = Balance::new(loops, self.settings.limits.connections_max);
        let balance = Arc::new(balance);
        let memory = Arc::new(Memory::new(self.settings.limits.memory_max));
        let addresses = Addresses::new(&self.settings.limits, &self.settings.trusted_proxies);
        let (others, inboxes): (Vec<_>, Vec<_>) =
            (0..loops).map(|_| mpsc::channel(INBOX_MAX)).unzip();
        let mut accepting = JoinSet::new();
        for acceptor in self.acceptors {
            let all = Loops {
                balance: Arc::clone(&balance),
                inboxes: others.clone(),
                told: self.handle.phase.subscribe(),
            };
            accepting.spawn(all.serve(acceptor));
        }
        #[cfg(feature = "http3")]
        let (endpoints, mut shaken) = match self.quic {
            Some(quic) => {
                let told = self.handle.phase.subscribe();
                let (endpoints, inboxes) =
                    quic.begin(&self.settings, &balance, loops, told, self.part.clone());
                (Some(endpoints), inboxes.into_iter())
            }
            None => (None, Vec::new().into_iter()),
        };
        let records = self.handle.loops.enter(&balance, &self.settings);
        let parts = self.listeners.into_iter().zip(inboxes).zip(records);
        let parts = parts.enumerate();
        let members = parts
            .map(|(index, ((listeners, inbox), record))| Member {
                index,
                settings: Arc::clone(&self.settings),
                told: self.handle.phase.subscribe(),
                balance: Arc::clone(&balance),
                addresses: Arc::clone(&addresses),
                memory: Arc::clone(&memory),
                record,
                listeners,
                inbox,
                gate: self.part.as_ref().map(|part| part.gate(index)),
                others: others.clone(),
                watch: None,
                #[cfg(feature = "http3")]
                shaken: shaken.next(),
            })
            .collect();
        Begun {
            members,
            accepting,
            #[cfg(feature = "http3")]
            endpoints,
        }
    }
}

/// A server that begins to serve.
struct Begun {
    /// The state that each loop starts with.
    members: Vec<Member>,
    /// The tasks of the acceptors, which end when the server drains.
    accepting: JoinSet<()>,
    #[cfg(feature = "http3")]
    endpoints: Option<Endpoints>,
}

/// Awaits the end of the loops and of the acceptors, whose listeners are closed then. An acceptor
/// that panics has whoever serves panic: a server that accepts no more must not look as if it
/// lived.
async fn with_acceptors(
    accepting: JoinSet<()>,
    loops: impl Future<Output = Result<DrainReport, Error>>,
) -> Result<DrainReport, Error> {
    let accepting = async {
        accepting.join_all().await;
        Ok(())
    };
    let (report, ()) = tokio::try_join!(loops, accepting)?;
    Ok(report)
}

/// An accepted connection goes from one loop's thread to another's.
const _: fn() = || {
    fn is_send<T: Send>() {}
    is_send::<Accepted>();
};
