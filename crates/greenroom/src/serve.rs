use std::fmt;
use std::future::{Future, IntoFuture};
use std::io;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::time::Duration;

use axum::serve::Listener;
use greenroom_server::{DrainReport, Error, Limits, ServerBuilder};
use greenroom_stage::ClientKey;

use crate::accepting::listen;
use crate::notices::carry_to_stages;
use crate::{ApplicationOn, TrustedProxies};

/// Serves `app` on `listener`, with one loop per core and the default [limits](Limits), until the
/// future is dropped or told to [drain](Serve::with_graceful_shutdown).
///
/// It takes what `axum::serve` takes: any [`Listener`] of axum, and any application that
/// [`ApplicationOn`] describes. A `TcpListener` is shared by all loops, a `UnixListener` is accepted
/// from on the first of them. Any other listener is asked for one connection after the other on the
/// runtime that awaits this, and the connections go to the loops: those that are a `TcpStream` or
/// `UnixStream` of tokio, as with `tap_io`, for good; others, such as those of a TLS library, are
/// driven by the runtime that they were accepted on, which must not be held up. All have the same
/// limits and take part in the drain; only newcomers that a loop refuses because it is late
/// ([`Limits::loop_lag_max`]) come from a `TcpListener`.
///
/// ```no_run
/// use axum::{Router, routing::get};
///
/// #[tokio::main]
/// async fn main() -> std::io::Result<()> {
///     let app = Router::new().route("/", get(|| async { "Hello, world!" }));
///     let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
///     greenroom::serve(listener, app).await
/// }
/// ```
///
/// # Errors
///
/// When awaited: if the listener cannot be used or a loop cannot be started, a [`std::io::Error`]
/// around an [`Error`]. [`Serve::report`] gives that itself.
///
/// # Panics
///
/// When awaited: if a listener of your own panics, as `axum::serve` does.
pub fn serve<L, A, Kind>(listener: L, app: A) -> Serve<L>
where
    L: Listener,
    A: ApplicationOn<L, Kind> + Send,
    Kind: 'static,
{
    Serve {
        settings: Settings {
            listener,
            builder: ServerBuilder::default(),
            client_key: None,
            ended: None,
            #[cfg(feature = "operators")]
            admin: None,
        },
        start: Box::new(move |settings| Box::pin(settings.run(app))),
    }
}

/// A server that serves when it is awaited.
#[must_use = "a server does nothing until it is awaited"]
pub struct Serve<L> {
    settings: Settings<L>,
    start: Box<dyn FnOnce(Settings<L>) -> Serving + Send>,
}

type Serving = Pin<Box<dyn Future<Output = Result<DrainReport, Error>> + Send>>;

struct Settings<L> {
    listener: L,
    builder: ServerBuilder<greenroom_server::Server>,
    client_key: Option<ClientKey>,
    ended: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    #[cfg(feature = "operators")]
    admin: Option<greenroom_server::Address>,
}

impl<L> Serve<L> {
    /// Drains the server when `signal` completes: no new connections, and until the
    /// [deadline](Self::drain_deadline) for what is under way.
    pub fn with_graceful_shutdown<F>(mut self, signal: F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.settings.ended = Some(Box::pin(signal));
        self
    }

    /// Limits and time-outs. Default: [`Limits::default`].
    pub fn limits(self, limits: Limits) -> Self {
        self.set(|builder| builder.limits(limits))
    }

    /// How many loops serve, each on a thread of its own. Default: one for each core.
    pub fn loops(self, loops: NonZeroUsize) -> Self {
        self.set(|builder| builder.loops(loops))
    }

    /// How long requests under way may take to finish once the server drains; then they are cut
    /// off. Default: 30 s.
    pub fn drain_deadline(self, deadline: Duration) -> Self {
        self.set(|builder| builder.drain_deadline(deadline))
    }

    /// How long an idle connection is kept once the server drains, for a request that is on its way: see
    /// [`ServerBuilder::drain_grace`]. Default: 500 ms.
    pub fn drain_grace(self, grace: Duration) -> Self {
        self.set(|builder| builder.drain_grace(grace))
    }

    /// Tells of each request at level `info`, target `greenroom::access`. Default: off.
    pub fn access_log(self, on: bool) -> Self {
        self.set(|builder| builder.access_log(on))
    }

    /// Answers clients that end their side of the connection while their request is under way: see
    /// [`ServerBuilder::half_close`]. Default: off.
    pub fn half_close(self, on: bool) -> Self {
        self.set(|builder| builder.half_close(on))
    }

    /// Whose a request is, for stages to be fair between clients: see
    /// [`Server::client_key`](crate::Server::client_key).
    pub fn client_key(mut self, client_key: ClientKey) -> Self {
        self.settings.client_key = Some(client_key);
        self
    }

    /// Proxies that are believed when they say for whom a request is: see [`TrustedProxies`], and
    /// [`ClientAddr`](crate::ClientAddr) for what follows. Default: none.
    pub fn trusted_proxies(self, proxies: TrustedProxies) -> Self {
        self.set(|builder| builder.trusted_proxies(proxies))
    }

    /// Shows [`status`](crate::status()) and metrics at an address of their own, to which only
    /// operators have access: `/greenroom/status` and `/greenroom/metrics`, as
    /// [`Operators`](crate::Operators) does. If the process has a recorder of metrics already, only
    /// the status. By default it is shown nowhere. Needs the feature `operators`.
    #[cfg(feature = "operators")]
    pub fn admin(mut self, address: impl Into<greenroom_server::Address>) -> Self {
        self.settings.admin = Some(address.into());
        self
    }

    fn set(
        mut self,
        set: impl FnOnce(
            ServerBuilder<greenroom_server::Server>,
        ) -> ServerBuilder<greenroom_server::Server>,
    ) -> Self {
        self.settings.builder = set(self.settings.builder);
        self
    }
}

impl<L: Listener> Serve<L> {
    /// The address that the listener is bound to.
    ///
    /// # Errors
    ///
    /// If the listener does not know it.
    pub fn local_addr(&self) -> io::Result<L::Addr> {
        self.settings.listener.local_addr()
    }
}

impl<L> Serve<L> {
    /// Serves, as awaiting it does, and then tells whom the drain cut off.
    ///
    /// # Errors
    ///
    /// [`Error::Bind`] if the listener cannot be used, [`Error::Start`] if a loop cannot be started,
    /// [`Error::LoopPanicked`] if one ended by a fault of ours.
    pub async fn report(self) -> Result<DrainReport, Error> {
        (self.start)(self.settings).await
    }
}

impl<L: Listener> Settings<L> {
    async fn run<A, Kind>(self, app: A) -> Result<DrainReport, Error>
    where
        A: ApplicationOn<L, Kind>,
    {
        #[cfg(feature = "operators")]
        let _admin = self.admin.as_ref().map(show).transpose()?;
        carry_to_stages();
        let (app, introduction) = app.into_app_on(self.client_key);
        let server = listen(self.builder, self.listener, introduction)?.bind()?;
        let handle = server.handle();
        let mut serving = Box::pin(server.serve(app));
        if let Some(ended) = self.ended {
            tokio::select! {
                report = serving.as_mut() => return report,
                () = ended => handle.drain(),
            }
        }
        serving.await
    }
}

#[cfg(feature = "operators")]
fn show(address: &greenroom_server::Address) -> Result<crate::Serving, Error> {
    let operators = crate::Operators::bind(address)?;
    let counted = crate::count().unwrap_or_else(|error| {
        tracing::warn!(%error, "the address for operators shows no metrics");
        axum::Router::new()
    });
    Ok(operators.serve(counted))
}

// Not for a `Listener` only: whoever serves something else is told of that, and not of an `.await`.
impl<L: Send + 'static> IntoFuture for Serve<L> {
    type Output = io::Result<()>;
    type IntoFuture = Pin<Box<dyn Future<Output = io::Result<()>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            for cut in self.report().await?.cut {
                tracing::warn!(%cut, "cut off when the time to drain was over");
            }
            Ok(())
        })
    }
}

impl<L: fmt::Debug> fmt::Debug for Serve<L> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Serve")
            .field("listener", &self.settings.listener)
            .field("settings", &self.settings.builder)
            .finish_non_exhaustive()
    }
}
