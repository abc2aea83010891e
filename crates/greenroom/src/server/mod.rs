//! A server with the parts that its process needs: addresses, signals, admin server, actors.

mod builder;
mod handle;
mod settings;
mod sources;

pub use builder::ServerBuilder;
pub use handle::{Handle, shutdown_on_signals};
pub(crate) use settings::{Settings, setters};
pub(crate) use sources::Sources;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use greenroom_actor::ActorSystem;
use greenroom_server::{Address, App, DrainReport, Error, Upgrades, upgrade_on_signal};
use greenroom_stage::ClientKey;

#[cfg(feature = "admin")]
use crate::admin::{AdminActions, AdminServer};
use crate::notices::carry_to_stages;
use crate::placing::warn_unplaced;
use crate::status::{Shown, tell_scopes};
use crate::{IntoApp, OnLoops, Readiness, Status};

/// A server that is bound to its addresses.
///
/// ```no_run
/// use axum::{Router, routing::get};
/// use greenroom::Server;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let report = Server::builder()
///     .listen("[::1]:5000")
///     .listen("unix:/run/app.sock")
///     .shutdown_on_signals()
///     .serve(Router::new().route("/hello", get(|| async { "Hello, world!" })))
///     .await?;
/// for cut in &report.aborted {
///     eprintln!("aborted: {cut}");
/// }
/// # Ok(())
/// # }
/// ```
///
/// [`bind`](ServerBuilder::bind) returns the server itself, for a program that needs to know the
/// port that the system chose, or a [`Handle`] to end it by:
///
/// ```no_run
/// use std::time::Duration;
///
/// use axum::Router;
/// use greenroom::{Limits, Server};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let limits = Limits {
///     drain_deadline: Duration::from_secs(10),
///     ..Limits::default()
/// };
/// let server = Server::builder().listen("127.0.0.1:0").limits(limits).bind()?;
/// println!("listening at {}", server.local_addresses()[0]);
/// let handle = server.handle(); // for another task, which calls `handle.drain()`
/// server.serve(Router::new()).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Server {
    inner: greenroom_server::Server,
    shown: Arc<Shown>,
    client_key: Option<ClientKey>,
    actors: Vec<ActorSystem>,
    /// There if SIGUSR2 begins an upgrade.
    upgrades: Option<Upgrades>,
    #[cfg(feature = "admin")]
    admin: Option<AdminServer>,
}

impl Server {
    /// Returns the settings of a server, beginning with the defaults.
    pub fn builder() -> ServerBuilder {
        ServerBuilder::default()
    }

    pub(crate) fn bind(settings: Settings) -> Result<Self, Error> {
        let upgrades = match settings.upgrades {
            None if settings.upgrade_on_signal => {
                Some(Upgrades::of_process().map_err(Error::Upgrade)?)
            }
            upgrades => upgrades,
        };
        let mut server = settings.server;
        if let Some(upgrades) = &upgrades {
            server = server.upgrades(upgrades);
        }
        let mut inner = server.bind()?;
        let shown = Shown::attach(
            &mut inner,
            &settings.actors,
            settings.readiness,
            settings.sources,
        );
        Ok(Self {
            #[cfg(feature = "admin")]
            admin: settings
                .admin
                .map(|address| {
                    let shown = Arc::clone(&shown);
                    AdminServer::bind(address?, shown, settings.admin_token, upgrades.as_ref())
                })
                .transpose()?,
            shown,
            inner,
            client_key: settings.client_key,
            actors: settings.actors,
            upgrades: upgrades.filter(|_| settings.upgrade_on_signal),
        })
    }

    /// Returns the addresses that the server listens on, in the order in which they were named; a
    /// port 0 is replaced by the port that the system chose.
    #[must_use]
    pub fn local_addresses(&self) -> &[Address] {
        self.inner.local_addresses()
    }

    /// Returns the address that the [admin server](ServerBuilder::admin) listens on, if there is
    /// one.
    #[cfg(feature = "admin")]
    #[must_use]
    pub fn admin_address(&self) -> Option<&Address> {
        self.admin.as_ref().map(AdminServer::address)
    }

    /// Serves the [admin address](ServerBuilder::admin) from now on, if there is one, and not only
    /// while the server [serves](Self::serve): for programs that load their applications between
    /// [`bind`](ServerBuilder::bind) and then. `/ready` says meanwhile that it is not. A second
    /// call does nothing.
    ///
    /// # Panics
    ///
    /// If called outside a tokio runtime, which must live as long as the server.
    #[cfg(feature = "admin")]
    pub fn serve_admin(&mut self) {
        if let Some(admin) = &mut self.admin {
            admin.serve();
        }
    }

    /// Returns the actions that operators can take at the [admin address](ServerBuilder::admin);
    /// `None` if there is none, or [no token](ServerBuilder::admin_token) for them.
    #[cfg(feature = "admin")]
    #[must_use]
    pub fn admin_actions(&self) -> Option<AdminActions> {
        self.admin.as_ref()?.actions()
    }

    /// Returns what the readiness of this server depends on.
    #[must_use]
    pub fn readiness(&self) -> Readiness {
        self.shown.readiness.clone()
    }

    /// Returns a handle that ends this server and shows its status.
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle::new(Arc::clone(&self.shown))
    }

    /// Returns the state of this server at this moment.
    #[must_use]
    pub fn status(&self) -> Status {
        self.shown.status()
    }

    /// Serves `app`, placed by [`Placement::auto`](crate::Placement::auto), until the
    /// [handle](Self::handle) ends it; if the future is dropped, the server ends at once. The
    /// report names the requests that were aborted. A part that is not placed (an
    /// [`App`](crate::App) that does not [place itself](crate::App::places_itself), [`OnLoops`]) is
    /// named by a warning.
    ///
    /// # Errors
    ///
    /// [`Error::Signals`] if signals cannot be caught, [`Error::Start`] if a loop cannot be
    /// started, [`Error::LoopPanicked`] if one ended by a fault of ours.
    ///
    /// # Panics
    ///
    /// If the system has no threads for the default stage.
    pub async fn serve<A, Kind>(self, app: A) -> Result<DrainReport, Error>
    where
        A: IntoApp<Kind>,
    {
        self.serve_from(app).await
    }

    /// Serves `app` on the connections of a listener `L`.
    pub(crate) async fn serve_from<A, Kind, L>(self, app: A) -> Result<DrainReport, Error>
    where
        A: IntoApp<Kind, L>,
    {
        if let Some(application) = app.unplaced() {
            warn_unplaced(application);
        }
        let app = app.into_app(self.client_key.clone());
        self.run(app, greenroom_server::Server::serve).await
    }

    /// Like [`serve`](Self::serve), with all loops on the calling thread, whose runtime must be
    /// able to `spawn_local`: a `LocalRuntime`, or a `LocalSet` on a current-thread runtime. For
    /// programs that own their thread, and for tests, which so can pause the clock. Nothing is
    /// placed: handlers run on the calling thread too, unless the application has placements of its
    /// own.
    ///
    /// # Errors
    ///
    /// [`Error::Signals`] if signals cannot be caught, [`Error::Start`] if a listener cannot be
    /// registered with the runtime.
    ///
    /// # Panics
    ///
    /// When polled outside such a runtime.
    pub async fn serve_local<A, Kind>(self, app: A) -> Result<DrainReport, Error>
    where
        OnLoops<A>: IntoApp<Kind>,
    {
        let app = OnLoops(app).into_app(self.client_key.clone());
        self.run(app, greenroom_server::Server::serve_local).await
    }

    /// Runs the server, with its admin server and the end of its actors.
    async fn run<A, F>(
        mut self,
        app: A,
        serve: impl FnOnce(greenroom_server::Server, A) -> F,
    ) -> Result<DrainReport, Error>
    where
        A: App,
        F: Future<Output = Result<DrainReport, Error>>,
    {
        let upgrading = self.upgrades.take().map(upgrade_on_signal).transpose();
        let upgrading = upgrading.map_err(Error::Signals)?;
        carry_to_stages();
        tell_scopes();
        #[cfg(feature = "psgi")]
        self.shown.claim(&app);
        #[cfg(feature = "admin")]
        {
            self.serve_admin();
            self.admin.iter().for_each(AdminServer::announce);
        }
        let deadline = self.inner.limits().drain_deadline;
        let report = serve(self.inner, app).await;
        if let Some(upgrading) = upgrading {
            upgrading.abort();
        }
        #[cfg(feature = "admin")]
        if let Some(admin) = self.admin {
            admin.end().await;
        }
        join_all(self.actors.iter().map(|system| end(system, deadline))).await;
        report
    }
}

async fn end(system: &ActorSystem, deadline: Duration) {
    let report = system.shutdown(deadline).await;
    if !report.is_clean() {
        tracing::warn!(
            system = system.name(),
            killed = report.killed,
            "actors that were not done by the drain deadline were killed"
        );
    }
}
