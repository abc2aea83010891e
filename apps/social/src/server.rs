//! The application behind its addresses.

use std::net::SocketAddr;

use anyhow::Context;
use axum::Router;
use axum::extract::State;
use axum::routing::get;
use greenroom::{Address, DrainReport, Handle, Importance, Placement};
use http::header::{
    CONTENT_SECURITY_POLICY, REFERRER_POLICY, STRICT_TRANSPORT_SECURITY, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use http::{HeaderName, HeaderValue};
use tower_http::set_header::SetResponseHeaderLayer;

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
        let proxies = settings.trusted_proxies.iter().copied();
        let mut builder = greenroom::Server::builder()
            .limits(settings.server.clone())
            .trusted_proxies(proxies.collect());
        for address in &settings.listen {
            builder = builder.listen(*address);
        }
        if let Some(address) = settings.status_listen {
            builder = builder.admin(address);
        }
        let server = builder.bind()?;
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
        let report = self.server.serve(router(self.app.clone())).await;
        self.app.shut_down().await;
        Ok(report?)
    }
}

/// All routes. Each part says itself how long its bodies may be.
pub fn router(app: App) -> Router {
    let health = Router::new()
        .route("/health", get(health))
        .route("/ready", get(ready))
        .layer(Placement::auto().importance(Importance::Critical));
    let mut routes = Router::new()
        .merge(api::router(&app))
        .merge(web::router(&app))
        .merge(health);
    for (name, value) in SECURITY_HEADERS {
        let value = HeaderValue::from_static(value);
        routes = routes.layer(SetResponseHeaderLayer::if_not_present(name, value));
    }
    if app.settings.secure_cookies() {
        let header = SetResponseHeaderLayer::if_not_present(STRICT_TRANSPORT_SECURITY, A_YEAR);
        routes = routes.layer(header);
    }
    routes.with_state(app)
}

/// Of RFC 6797: who has come by https once comes by https only.
const A_YEAR: HeaderValue = HeaderValue::from_static("max-age=31536000");

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

/// What a balancer asks. The storage is not asked: if it is away, it is for all replicas, and their clear answers are better
/// than none.
async fn health() -> &'static str {
    "fine\n"
}

/// What operators ask: whether the storage answers.
async fn ready(State(app): State<App>) -> Result<&'static str, Failure> {
    app.store.ping().await?;
    Ok("ready\n")
}
