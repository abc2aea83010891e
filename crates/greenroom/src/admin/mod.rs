//! The admin server: a page, status, metrics, health and actions at an address of their own, where
//! no application can stand in the way.

mod actions;
mod history;
mod metrics;
mod page;
mod routes;
mod token;
mod view;

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use greenroom_server::{Address, Error, Limits, Server, Upgrades};
use tokio::task::{AbortHandle, JoinHandle};

use crate::server::Sources;
use crate::status::Shown;
use crate::{IntoApp, OnLoops, Readiness};
pub use actions::AdminActions;
use history::History;
pub use metrics::{InstallMetricsError, METRICS, Metric, MetricKind, install_metrics};
pub use token::{AdminToken, AdminTokenError};

/// The name by which its sockets go over to the next version.
const NAME: &str = "admin";

/// A server of its own, on a loop of its own. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct AdminServer {
    address: Address,
    handle: greenroom_server::Handle,
    /// There until it serves.
    bound: Option<Server>,
    /// There once it serves.
    serving: Option<JoinHandle<()>>,
    state: Arc<Admin>,
    sampling: Option<AbortHandle>,
}

/// The state that its handlers share.
#[derive(Debug)]
pub(crate) struct Admin {
    shown: Arc<Shown>,
    history: History,
    actions: Option<AdminActions>,
    begun: Instant,
}

impl AdminServer {
    pub(crate) fn bind(
        address: Address,
        shown: Arc<Shown>,
        token: Option<AdminToken>,
        upgrades: Option<&Upgrades>,
    ) -> Result<Self, Error> {
        let mut server = Server::builder()
            .listen(address)
            .loops(NonZeroUsize::MIN)
            .loops_named(NAME)
            .limits(limits());
        if let Some(upgrades) = upgrades {
            server = server.upgrades(&upgrades.named(NAME));
        }
        let mut server = server.bind()?;
        // So that its own routes are shown by no other server.
        Shown::attach(&mut server, &[], Readiness::default(), Sources::default());
        Ok(Self {
            address: server.local_addresses()[0].clone(),
            handle: server.handle(),
            bound: Some(server),
            serving: None,
            state: Arc::new(Admin {
                actions: token.map(|token| AdminActions::new(token, shown.server.clone())),
                shown,
                history: History::default(),
                begun: Instant::now(),
            }),
            sampling: None,
        })
    }

    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    pub(crate) fn actions(&self) -> Option<AdminActions> {
        self.state.actions.clone()
    }

    /// Logs where it listens.
    pub(crate) fn announce(&self) {
        let address = &self.address;
        tracing::info!(%address, url = address.url().map(tracing::field::display), "status at");
    }

    /// Serves, unless it does so already. Must be called within a runtime that lives as long.
    pub(crate) fn serve(&mut self) {
        let Some(server) = self.bound.take() else {
            return;
        };
        tracing::debug!(address = %self.address, "the admin server serves");
        // Not placed: a stage may be full of what it is asked about, and nothing else is on its
        // loop.
        let app = IntoApp::<_>::into_app(OnLoops(routes::router(&self.state)), None);
        self.serving = Some(tokio::spawn(async move {
            if let Err(error) = server.serve(app).await {
                tracing::error!(%error, "the admin server has ended");
            }
        }));
        let sampling = tokio::spawn(history::sample(Arc::clone(&self.state)));
        self.sampling = Some(sampling.abort_handle());
    }

    /// Ends it, and waits until its socket's file is gone.
    pub(crate) async fn end(mut self) {
        self.handle.abort();
        if let Some(serving) = self.serving.take() {
            // Its faults are logged.
            let _ended = serving.await;
        }
    }
}

impl Drop for AdminServer {
    fn drop(&mut self) {
        self.handle.abort();
        if let Some(sampling) = &self.sampling {
            sampling.abort();
        }
    }
}

/// Its loop waits for a processor as long as all others do when the machine is overloaded, and then
/// more than ever it must refuse nobody.
fn limits() -> Limits {
    Limits {
        loop_lag_max: Duration::from_hours(1),
        ..Limits::default()
    }
}
