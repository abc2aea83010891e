use std::path::PathBuf;
use std::sync::Arc;

use greenroom_stage::scope::{Listing, StatusScope};
use greenroom_timing::interned;
use tokio::sync::{mpsc, oneshot};

use crate::builder::Builder;
use crate::error::StartError;
use crate::pool::Pool;
use crate::settings::Settings;
use crate::status::GatewayStatus;
use crate::supervisor::Command;
pub use crate::supervisor::report::{KilledWorker, ShutdownReport};
use crate::supervisor::shared::Shared;
use crate::uploads::Uploads;

/// A Perl application with its worker processes. Clones are the same gateway. When the last one is
/// dropped without [`shutdown`](Self::shutdown), the processes are killed.
///
/// ```no_run
/// use greenroom_psgi::Gateway;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let gateway = Gateway::builder("app.psgi").workers(4).start().await?;
/// for worker in gateway.status().workers {
///     println!("process {} serves, driven by {}", worker.pid, worker.mode);
/// }
/// gateway.reload().await?;
/// let report = gateway.shutdown().await;
/// println!("{} workers had to be killed", report.killed.len());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Gateway {
    shared: Arc<Shared>,
    commands: mpsc::Sender<Command>,
    route: &'static str,
}

static GATEWAYS: Listing<Shared> = Listing::new();

/// Returns the status of all gateways of the process that serve, the oldest first.
#[must_use]
pub fn status() -> Vec<GatewayStatus> {
    let gateways = GATEWAYS.all();
    gateways.iter().map(|shared| shared.status()).collect()
}

/// Returns the status of the gateways that this scope [claims](Gateway::claim), and of those that
/// none does, the oldest first.
#[must_use]
pub fn status_within(scope: &StatusScope) -> Vec<GatewayStatus> {
    let gateways = GATEWAYS.within(scope);
    gateways.iter().map(|shared| shared.status()).collect()
}

impl Gateway {
    /// Returns the default settings for an application. `application` is the file that returns its
    /// code reference.
    pub fn builder(application: impl Into<PathBuf>) -> Builder {
        Builder::new(application.into())
    }

    pub(crate) fn new(shared: Arc<Shared>, commands: mpsc::Sender<Command>) -> Self {
        GATEWAYS.add(&shared);
        let route = interned(&format!("{}/*", shared.settings.mount));
        Self {
            shared,
            commands,
            route,
        }
    }

    /// Claims this gateway for a scope, such as a server: the status of other scopes does not show
    /// it any more, unless they claim it too. A server claims what it is given to serve.
    pub fn claim(&self, scope: &StatusScope) {
        GATEWAYS.claim(&self.shared, scope);
    }

    /// Loads the application again beside the one that serves, and switches to it once all its
    /// workers are ready; the old workers finish the requests that they have begun. Returns the
    /// number of the generation that serves now. The reload goes on if the future is dropped after
    /// it was first polled. Calls that come during a reload share one more, after it.
    ///
    /// # Errors
    ///
    /// The reason why the new generation could not start. The old one goes on serving then.
    pub async fn reload(&self) -> Result<u32, Arc<StartError>> {
        let (reply, result) = oneshot::channel();
        // If the command cannot be sent, no reply comes either.
        self.commands.send(Command::Reload(reply)).await.ok();
        result
            .await
            .unwrap_or_else(|_| Err(Arc::new(StartError::ShutDown)))
    }

    /// Lets the workers finish the requests that they have begun, for at most the [drain
    /// deadline](Builder::drain_deadline), ends all Perl processes and removes the private
    /// directory. Drain the server before: requests find no worker any more. A second call reports
    /// nothing.
    pub async fn shutdown(&self) -> ShutdownReport {
        let (reply, report) = oneshot::channel();
        self.commands.send(Command::Shutdown(reply)).await.ok();
        report.await.unwrap_or_default()
    }

    /// Returns when the gateway can start no worker any more: it was shut down, or the process that
    /// it is [attached](Builder::start_attached) to has ended. In the second case its workers go on
    /// serving; shut it down then.
    pub async fn closed(&self) {
        self.shared.closed().await;
    }

    /// Returns its [label](Builder::label), or the application's file if that is empty.
    #[must_use]
    pub fn name(&self) -> String {
        match self.shared.settings.label() {
            "" => self.shared.settings.application.display().to_string(),
            label => label.to_owned(),
        }
    }

    /// Returns the present status. Reads a few lines of `/proc` for each worker.
    #[must_use]
    pub fn status(&self) -> GatewayStatus {
        self.shared.status()
    }

    pub(crate) fn pool(&self) -> &Arc<Pool> {
        &self.shared.pool
    }

    pub(crate) fn mount(&self) -> &str {
        &self.shared.settings.mount
    }

    /// Returns the name that its requests have in metrics.
    pub(crate) fn route(&self) -> &'static str {
        self.route
    }

    pub(crate) fn uploads(&self) -> &Arc<Uploads> {
        &self.shared.uploads
    }

    pub(crate) fn settings(&self) -> &Arc<Settings> {
        &self.shared.settings
    }
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Gateway")
            .field("application", &self.shared.settings.application)
            .finish_non_exhaustive()
    }
}
