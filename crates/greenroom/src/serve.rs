use std::fmt;
use std::future::{Future, IntoFuture};
use std::io;
use std::pin::Pin;

use axum::serve::Listener;
use greenroom_server::{DrainReport, Error};

use crate::accepting::listen;
use crate::server::{Settings, setters};
use crate::{IntoApp, Server};

/// Serves `app` on `listener`, with one loop per core and the default [limits](crate::Limits),
/// until the future is dropped or gets the signal to [drain](Serve::with_graceful_shutdown).
///
/// It takes what `axum::serve` takes: any [`Listener`] of axum, and any application that
/// [`IntoApp`] describes. A `TcpListener` is shared by all loops, a `UnixListener` is accepted from
/// on the first of them. Any other listener is polled for one connection after the other on the
/// runtime that awaits this, and the connections go to the loops: those that are a `TcpStream` or
/// `UnixStream` of tokio, as with `tap_io`, for good; others, such as those of a TLS library, are
/// driven by the runtime that they were accepted on, which must not be held up. All have the same
/// limits and take part in the drain; but a loop that is late
/// ([`loop_lag_max`](crate::Limits::loop_lag_max)) rejects new connections of a `TcpListener` only.
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
/// around an [`Error`]. [`Serve::report`] returns the latter itself.
///
/// # Panics
///
/// When awaited: if a listener of your own panics, as `axum::serve` does.
pub fn serve<L, A, Kind>(listener: L, app: A) -> Serve<L>
where
    L: Listener,
    A: IntoApp<Kind, L> + Send,
    Kind: 'static,
{
    Serve {
        listener,
        settings: Settings::default(),
        ended: None,
        start: Box::new(move |listener, settings, ended| {
            Box::pin(run(app, listener, settings, ended))
        }),
    }
}

/// A server that serves when it is awaited.
#[must_use = "a server does nothing until it is awaited"]
pub struct Serve<L> {
    listener: L,
    settings: Settings,
    ended: Option<Ended>,
    start: Box<dyn FnOnce(L, Settings, Option<Ended>) -> Serving + Send>,
}

type Ended = Pin<Box<dyn Future<Output = ()> + Send>>;
type Serving = Pin<Box<dyn Future<Output = Result<DrainReport, Error>> + Send>>;

impl<L> Serve<L> {
    setters!();

    /// Drains the server when `signal` completes: no new connections, and until the
    /// [deadline](crate::Limits::drain_deadline) for what is under way.
    pub fn with_graceful_shutdown<F>(mut self, signal: F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.ended = Some(Box::pin(signal));
        self
    }
}

impl<L: Listener> Serve<L> {
    /// Returns the address that the listener is bound to.
    ///
    /// # Errors
    ///
    /// If the listener does not know it.
    pub fn local_addr(&self) -> io::Result<L::Addr> {
        self.listener.local_addr()
    }
}

impl<L> Serve<L> {
    /// Serves, as awaiting it does, and then reports the requests that the drain aborted.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] if a limit is not allowed, [`Error::Bind`] if the listener cannot be used,
    /// [`Error::Signals`] if signals cannot be caught, [`Error::Start`] if a loop cannot be
    /// started, [`Error::LoopPanicked`] if one ended by a fault of ours.
    pub async fn report(self) -> Result<DrainReport, Error> {
        (self.start)(self.listener, self.settings, self.ended).await
    }
}

async fn run<L, A, Kind>(
    app: A,
    listener: L,
    mut settings: Settings,
    ended: Option<Ended>,
) -> Result<DrainReport, Error>
where
    L: Listener,
    A: IntoApp<Kind, L>,
{
    settings.server = listen(settings.server, listener, app.introduction())?;
    let server = Server::bind(settings)?;
    let handle = server.handle();
    let mut serving = Box::pin(server.serve_from(app));
    if let Some(ended) = ended {
        tokio::select! {
            report = serving.as_mut() => return report,
            () = ended => handle.drain(),
        }
    }
    serving.await
}

// Not for a `Listener` only: an error of the compiler then names the type that is no listener, and
// not the `.await`.
impl<L: Send + 'static> IntoFuture for Serve<L> {
    type Output = io::Result<()>;
    type IntoFuture = Pin<Box<dyn Future<Output = io::Result<()>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            for cut in self.report().await?.aborted {
                tracing::warn!(%cut, "aborted by the deadline of the drain");
            }
            Ok(())
        })
    }
}

impl<L: fmt::Debug> fmt::Debug for Serve<L> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Serve")
            .field("listener", &self.listener)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
