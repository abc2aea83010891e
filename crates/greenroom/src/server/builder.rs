use std::net::TcpListener;
use std::os::unix::net::UnixListener;

use greenroom_server::{
    Acceptor, Address, AddressError, DrainReport, Error, InheritedSocket, Upgrades,
};

use super::Server;
use super::settings::{Settings, setters};
use crate::IntoApp;

/// Settings of a [`Server`].
#[must_use = "a server does nothing before it serves"]
#[derive(Debug, Default)]
pub struct ServerBuilder {
    settings: Settings,
}

impl ServerBuilder {
    setters!();

    /// Listens on `address`, and on those named before: an [`Address`], a `SocketAddr`, or a text
    /// such as `127.0.0.1:5000`, `[::1]:5000` or `unix:/run/app.sock`. A text that is none of these
    /// is an error of [`bind`](Self::bind).
    pub fn listen<A>(self, address: A) -> Self
    where
        A: TryInto<Address, Error: Into<AddressError>>,
    {
        self.set(|server| server.listen(address))
    }

    /// Allows that there is no address, but for that of [operators](Self::admin): the server then
    /// takes no requests, and lasts until its [handle](crate::Server::handle) ends it. For programs
    /// that work for others and not for clients.
    pub fn without_address(self) -> Self {
        self.set(greenroom_server::ServerBuilder::without_address)
    }

    /// Listens on `address` too, for proxies that speak the PROXY protocol, as `HAProxy` does by
    /// `send-proxy` or `send-proxy-v2` and nginx by `proxy_protocol on`: see
    /// [`greenroom_server::ServerBuilder::listen_proxied`].
    pub fn listen_proxied<A>(self, address: A) -> Self
    where
        A: TryInto<Address, Error: Into<AddressError>>,
    {
        self.set(|server| server.listen_proxied(address))
    }

    /// Listens on `address` too, without TLS even if the server has it: see
    /// [`greenroom_server::ServerBuilder::listen_plain`].
    pub fn listen_plain<A>(self, address: A) -> Self
    where
        A: TryInto<Address, Error: Into<AddressError>>,
    {
        self.set(|server| server.listen_plain(address))
    }

    /// Listens on `address` too, without TLS, and sends clients on to the first address that has
    /// it; responses over TLS then tell browsers to use nothing else: see
    /// [`greenroom_server::ServerBuilder::listen_redirecting`].
    pub fn listen_redirecting<A>(self, address: A) -> Self
    where
        A: TryInto<Address, Error: Into<AddressError>>,
    {
        self.set(|server| server.listen_redirecting(address))
    }

    /// Responds to CAs that ask whether a name is ours, on the addresses of
    /// [`listen_redirecting`](Self::listen_redirecting): see
    /// [`greenroom_server::ServerBuilder::challenges`].
    pub fn challenges<F>(self, respond: F) -> Self
    where
        F: Fn(&str, &str) -> Option<String> + Send + Sync + 'static,
    {
        self.set(|server| server.challenges(respond))
    }

    /// Serves a listener that is already bound, too. With several loops its port is shared with
    /// listeners of the other loops, where the system allows it.
    pub fn listener(self, listener: TcpListener) -> Self {
        self.set(|server| server.listener(listener))
    }

    /// Serves a listener on a Unix socket that is already bound, too. Its file stays when the
    /// server ends.
    pub fn unix_listener(self, listener: UnixListener) -> Self {
        self.set(|server| server.unix_listener(listener))
    }

    /// Serves a listener that other processes have, too. It stays the only one of its port: its
    /// connections are shared out among the loops, and when this server ends, waiting connections
    /// are left to the others. A socket's file stays when the server ends.
    pub fn inherited(self, socket: InheritedSocket) -> Self {
        self.set(|server| server.inherited(socket))
    }

    /// Like [`inherited`](Self::inherited), for proxies that speak the PROXY protocol, as with
    /// [`listen_proxied`](Self::listen_proxied).
    pub fn inherited_proxied(self, socket: InheritedSocket) -> Self {
        self.set(|server| server.inherited_proxied(socket))
    }

    /// Serves the connections that `acceptor` accepts, too.
    pub fn acceptor(self, acceptor: impl Acceptor) -> Self {
        self.set(|server| server.acceptor(acceptor))
    }

    /// Exchanges the process for its next version at SIGUSR2, without a lost request: the program
    /// is started anew from the same path with the same arguments, gets all sockets of the
    /// addresses that are [named](Self::listen) and the admin server's, and when it serves, this
    /// process drains. If the next version does not begin to serve within
    /// [`upgrade_timeout`](crate::Limits::upgrade_timeout), this one goes on. The log tells the
    /// outcome, and so does `greenroom upgrade PID`.
    ///
    /// The next version finds what it gets in [`bind`](Self::bind). It must listen on the same
    /// addresses by their names, and its standard input must be left alone until then. The service
    /// manager, if `NOTIFY_SOCKET` names one, is told of it all. Default: off.
    pub fn upgrade_on_signal(mut self) -> Self {
        self.settings.upgrade_on_signal = true;
        self
    }

    /// Takes part in the upgrades of the process, which [`Upgrades::begin`] begins: for programs
    /// that do more before they serve than [`upgrade_on_signal`](Self::upgrade_on_signal) knows of.
    pub fn upgrades(mut self, upgrades: &Upgrades) -> Self {
        self.settings.upgrades = Some(upgrades.clone());
        self
    }

    fn set(
        mut self,
        set: impl FnOnce(greenroom_server::ServerBuilder) -> greenroom_server::ServerBuilder,
    ) -> Self {
        self.settings.server = set(self.settings.server);
        self
    }

    /// Binds the addresses. Connections wait from now on, and are accepted when the server
    /// [serves](Server::serve). The process' limit on open descriptors is raised as far as it goes.
    ///
    /// # Errors
    ///
    /// [`Error::Address`] if a text is no address, [`Error::Limit`] if a limit is not allowed,
    /// [`Error::NoAddress`] if there is no address, [`Error::Bind`] if one cannot be listened on,
    /// [`Error::Upgrade`] if the version before does not hand over its sockets.
    pub fn bind(self) -> Result<Server, Error> {
        Server::bind(self.settings)
    }

    /// Binds the addresses and serves `app`: see [`bind`](Self::bind) and [`Server::serve`].
    ///
    /// # Errors
    ///
    /// Those of [`bind`](Self::bind) and [`Server::serve`].
    ///
    /// # Panics
    ///
    /// If the system has no threads for the default stage.
    pub async fn serve<A, Kind>(self, app: A) -> Result<DrainReport, Error>
    where
        A: IntoApp<Kind>,
    {
        self.bind()?.serve(app).await
    }
}
