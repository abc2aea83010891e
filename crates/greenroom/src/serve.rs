use std::future::{Future, IntoFuture};
use std::io;
use std::marker::PhantomData;
use std::pin::Pin;

use greenroom_server::{DrainReport, Error};
use greenroom_stage::ClientKey;
use tokio::net::TcpListener;

use crate::{Application, Server, TrustedProxies};

/// Serves `app` on `listener`, with one loop per core and the default
/// [limits](crate::Limits), until the future is dropped or told to
/// [drain](Serve::with_graceful_shutdown).
///
/// # Errors
///
/// When awaited: [`Error`], if the listener cannot be used or a loop cannot be started.
pub fn serve<A, Kind>(listener: TcpListener, app: A) -> Serve<A, Kind>
where
    A: Application<Kind>,
{
    Serve {
        listener: listener.into_std(),
        app,
        client_key: None,
        trusted_proxies: TrustedProxies::default(),
        ended: None,
        kind: PhantomData,
    }
}

/// A server that serves when it is awaited.
#[must_use = "a server does nothing until it is awaited"]
pub struct Serve<A, Kind> {
    listener: io::Result<std::net::TcpListener>,
    app: A,
    client_key: Option<ClientKey>,
    trusted_proxies: TrustedProxies,
    ended: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    kind: PhantomData<fn() -> Kind>,
}

impl<A, Kind> Serve<A, Kind> {
    /// Whose a request is, for stages to be fair between clients: see [`Server::client_key`].
    pub fn client_key(mut self, client_key: ClientKey) -> Self {
        self.client_key = Some(client_key);
        self
    }

    /// Proxies that are believed when they say for whom a request is: see [`TrustedProxies`], and
    /// [`ClientAddr`](crate::ClientAddr) for what follows. Default: none.
    pub fn trusted_proxies(mut self, proxies: TrustedProxies) -> Self {
        self.trusted_proxies = proxies;
        self
    }

    /// Drains the server when `signal` completes: no new connections, 30 s for what is under way.
    pub fn with_graceful_shutdown(
        mut self,
        signal: impl Future<Output = ()> + Send + 'static,
    ) -> Self {
        self.ended = Some(Box::pin(signal));
        self
    }
}

impl<A: Application<Kind>, Kind> Serve<A, Kind> {
    async fn run(self) -> Result<DrainReport, Error> {
        let listener = self.listener.map_err(|source| Error::Bind {
            address: std::net::SocketAddr::from(([0, 0, 0, 0], 0)).into(),
            source,
        })?;
        let mut server = Server::builder()
            .listener(listener)
            .trusted_proxies(self.trusted_proxies)
            .bind()?;
        if let Some(client_key) = self.client_key {
            server = server.client_key(client_key);
        }
        let handle = server.handle();
        let mut serving = Box::pin(server.serve(self.app));
        if let Some(ended) = self.ended {
            tokio::select! {
                report = serving.as_mut() => return report,
                () = ended => handle.drain(),
            }
        }
        serving.await
    }
}

impl<A, Kind> IntoFuture for Serve<A, Kind>
where
    A: Application<Kind> + Send + 'static,
    Kind: 'static,
{
    type Output = Result<DrainReport, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}
