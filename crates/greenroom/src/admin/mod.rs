//! The admin server: status and metrics at an address of their own, where no application can stand
//! in the way.

mod metrics;

use std::num::NonZeroUsize;

use axum::routing::get;
use axum::{Json, Router};
use greenroom_server::{Address, App, Error, Server, Upgrades};
use greenroom_stage::{Placement, Priority};

use tokio::task::JoinHandle;

use crate::status::Shown;
use crate::{Handle, IntoApp};
pub use metrics::{InstallMetricsError, install_metrics};

/// The name by which its sockets go over to the next version.
const NAME: &str = "admin";

/// A server of its own, on a loop of its own: `/greenroom/status` and `/greenroom/metrics`.
#[derive(Debug)]
pub(crate) struct AdminServer(Server);

impl AdminServer {
    pub(crate) fn bind(address: Address, upgrades: Option<&Upgrades>) -> Result<Self, Error> {
        let mut server = Server::builder().listen(address).loops(NonZeroUsize::MIN);
        if let Some(upgrades) = upgrades {
            server = server.upgrades(&upgrades.named(NAME));
        }
        let mut server = server.bind()?;
        // So that its own routes are shown by no other server.
        Shown::attach(&mut server, &[]);
        Ok(Self(server))
    }

    pub(crate) fn address(&self) -> &Address {
        &self.0.local_addresses()[0]
    }

    /// Serves the status of this server, until the result is dropped, and then ends at once. Must
    /// be called within a runtime that lives as long.
    pub(crate) fn serve(self, shown: Handle) -> AdminServing {
        let address = self.address();
        tracing::info!(%address, url = address.url().map(display), "status at");
        let handle = self.0.handle();
        let app = app(shown);
        let task = tokio::spawn(async move {
            if let Err(error) = self.0.serve(app).await {
                tracing::error!(%error, "the admin server has ended");
            }
        });
        AdminServing { handle, task }
    }
}

/// An [`AdminServer`] that serves. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct AdminServing {
    handle: greenroom_server::Handle,
    task: JoinHandle<()>,
}

impl AdminServing {
    /// Ends it, and waits until its socket's file is gone.
    pub(crate) async fn end(mut self) {
        self.handle.abort();
        // Its faults are logged.
        let _ended = (&mut self.task).await;
    }
}

impl Drop for AdminServing {
    fn drop(&mut self) {
        self.handle.abort();
    }
}

fn app(shown: Handle) -> impl App {
    let metrics = install_metrics().unwrap_or_else(|error| {
        tracing::warn!(%error, "the admin server shows no metrics");
        Router::new()
    });
    let status = Router::new()
        .route(
            "/greenroom/status",
            get(move || async move { Json(shown.status()) }),
        )
        .layer(Placement::auto().priority(Priority::Critical));
    IntoApp::<_>::into_app(status.merge(metrics), None)
}
