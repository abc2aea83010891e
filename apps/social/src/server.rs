//! The application behind its addresses.

use std::net::SocketAddr;

use anyhow::Context;
use axum::Router;
use axum::extract::State;
use axum::middleware::from_fn_with_state;
use axum::routing::get;
use greenroom::{Address, DrainReport, Handle, Importance, Placement};
use http::header::{
    CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{HeaderName, HeaderValue};
use tower_http::set_header::SetResponseHeaderLayer;

use crate::auth::limit_requests;
use crate::config::Settings;
use crate::{App, Failure, api, sample, web};

/// The application, bound to its addresses.
#[derive(Debug)]
pub struct Server {
    app: App,
    server: greenroom::Server,
}

impl Server {
    /// Binds the addresses, then [starts](App::start) the application on the runtime that calls this, and fills an empty storage with a
    /// sample if that is wanted.
    ///
    /// # Errors
    /// If an address cannot be listened on, and those of [`App::start`].
    pub async fn start(settings: Settings) -> anyhow::Result<Self> {
        let mut builder = greenroom::Server::builder();
        for address in &settings.listen {
            builder = builder.listen(Address::Tcp(*address));
        }
        let server = builder.access_log(false).bind()?;
        let app = App::start(settings).await?;
        if app.settings.wants_sample() {
            sample::fill(&app)
                .await
                .context("the sample cannot be made")?;
        }
        Ok(Self { app, server })
    }

    /// What requests are answered from.
    #[must_use]
    pub fn app(&self) -> &App {
        &self.app
    }

    /// Where it listens, with the ports that the system chose.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        let tcp = |address: &Address| match address {
            Address::Tcp(address) => Some(*address),
            Address::Unix(_) => None,
        };
        self.server
            .local_addresses()
            .iter()
            .filter_map(tcp)
            .collect()
    }

    /// What ends it.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.server.handle()
    }

    /// Serves until the handle ends it, and then stops the actors.
    ///
    /// # Errors
    /// If a loop cannot be started, or ended by a fault of Greenroom.
    pub async fn serve(self) -> anyhow::Result<DrainReport> {
        // Handlers want to know who asks, so it is a make-service, which is not placed of itself.
        let routes = router(self.app.clone()).layer(Placement::auto());
        let service = routes.into_make_service_with_connect_info::<SocketAddr>();
        let report = self.server.serve(service).await;
        self.app.shut_down().await;
        Ok(report?)
    }
}

/// All routes. Each part says itself how long its bodies may be.
pub fn router(app: App) -> Router {
    let health = Router::new()
        .route("/health", get(health))
        .layer(Placement::auto().importance(Importance::Critical));
    let mut routes = Router::new()
        .merge(api::router(&app))
        .merge(web::router(&app))
        .layer(from_fn_with_state(app.clone(), limit_requests))
        .merge(health);
    for (name, value) in SECURITY_HEADERS {
        let value = HeaderValue::from_static(value);
        routes = routes.layer(SetResponseHeaderLayer::if_not_present(name, value));
    }
    routes.with_state(app)
}

/// On every answer, unless it says something else itself. Pages must say what they load.
const SECURITY_HEADERS: [(HeaderName, &str); 4] = [
    (
        CONTENT_SECURITY_POLICY,
        "default-src 'none'; frame-ancestors 'none'",
    ),
    (REFERRER_POLICY, "same-origin"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (X_FRAME_OPTIONS, "DENY"),
];

/// Whether the storage answers: what a balancer asks.
async fn health(State(app): State<App>) -> Result<&'static str, Failure> {
    app.store.ping().await?;
    Ok("fine\n")
}
