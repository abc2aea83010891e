//! What operators see at an address of their own, where no application can stand in the way.

mod metrics;

use std::num::NonZeroUsize;

use axum::Router;
use axum::routing::get;
use greenroom_server::{Address, Error, Handle};
use greenroom_stage::{Importance, Placement};

use crate::{Server, status_handler};
pub use metrics::{CountError, count};

/// A server of its own for operators, on a loop of its own: `/greenroom/status`, and beside it what [`count`] shows.
///
/// ```no_run
/// # async fn serve() -> Result<(), Box<dyn std::error::Error>> {
/// use greenroom::Operators;
///
/// let counted = greenroom::count()?; // before the first request
/// let _operators = Operators::bind(&"127.0.0.1:9100".parse()?)?.serve(counted);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Operators(Server);

impl Operators {
    /// Binds the address.
    ///
    /// # Errors
    /// If it cannot be listened on.
    pub fn bind(address: &Address) -> Result<Self, Error> {
        let server = Server::builder()
            .listen(address.clone())
            .loops(NonZeroUsize::MIN)
            .bind()?;
        Ok(Self(server))
    }

    /// Serves until what it returns is dropped, and then ends at once. Must be called within a runtime that lives as long.
    pub fn serve(self, counted: Router) -> Serving {
        for address in self.0.local_addresses() {
            tracing::info!(%address, url = url(address).map(display), "status at");
        }
        let handle = self.0.handle();
        tokio::spawn(async move {
            if let Err(error) = self.0.serve(router(counted)).await {
                tracing::error!(%error, "operators see the status no more");
            }
        });
        Serving(handle)
    }
}

/// [`Operators`] that are served. The server ends when this is dropped.
#[derive(Debug)]
#[must_use = "the server ends when this is dropped"]
pub struct Serving(Handle);

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn url(address: &Address) -> Option<String> {
    match address {
        Address::Tcp(socket) => Some(format!("http://{socket}")),
        Address::Unix(_) => None,
    }
}

fn router(counted: Router) -> Router {
    Router::new()
        .route("/greenroom/status", get(status_handler))
        .layer(Placement::auto().importance(Importance::Critical))
        .merge(counted)
}
