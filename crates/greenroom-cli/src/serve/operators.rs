//! What operators see at an address of their own, where no application can stand in the way.

use std::num::NonZeroUsize;

use axum::Router;
use axum::routing::get;
use greenroom::{Address, Error, Handle, Importance, Placement, Server};

use super::url;

/// Binds the address of --status-listen, if there is one.
pub(super) fn bind(address: Option<&Address>) -> Result<Option<Server>, Error> {
    let server = address.map(|address| {
        Server::builder()
            .listen(address.clone())
            .loops(NonZeroUsize::MIN)
            .bind()
    });
    server.transpose()
}

/// The server for operators. It ends at once when this is dropped.
pub(super) struct Operators(Handle);

impl Operators {
    /// Serves the status, and beside it `metrics`. Must be called within a runtime that lives as
    /// long as the server.
    pub(super) fn serve(server: Server, metrics: Router) -> Self {
        for address in server.local_addresses() {
            tracing::info!(%address, url = url(address).map(display), "status at");
        }
        let handle = server.handle();
        tokio::spawn(async move {
            if let Err(error) = server.serve(router(metrics)).await {
                tracing::error!(%error, "operators see the status no more");
            }
        });
        Self(handle)
    }
}

impl Drop for Operators {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn router(metrics: Router) -> Router {
    Router::new()
        .route("/greenroom/status", get(greenroom::status_handler))
        .layer(Placement::auto().importance(Importance::Critical))
        .merge(metrics)
}
