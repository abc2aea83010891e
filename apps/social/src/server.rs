//! The application together with its listeners.

use std::fmt::{self, Debug, Formatter};
use std::net::SocketAddr;
use std::num::NonZeroUsize;

use anyhow::Context;
use axum::Router;
use axum::extract::State;
use axum::routing::get;
use greenroom::{Address, DrainReport, Handle, Placement, Priority};
use http::header::{
    CONTENT_SECURITY_POLICY, REFERRER_POLICY, STRICT_TRANSPORT_SECURITY, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use http::{HeaderName, HeaderValue};
use tower_http::set_header::SetResponseHeaderLayer;

use crate::config::{Role, Settings};
use crate::node::{self, Node};
use crate::{App, Failure, api, rejection, sample, web};

/// A process of the application, bound to its addresses: only with the role `web` there are others
/// than that for operators.
pub struct Server {
    node: Node,
    server: greenroom::Server,
}

impl Server {
    /// Joins the cluster, binds the addresses, then starts what the roles say on the calling
    /// runtime, and fills an empty storage with a sample if the settings ask for one.
    ///
    /// # Errors
    /// Fails if an address cannot be listened on, the settings contradict each other, the storage
    /// cannot be opened, or the cluster cannot be joined.
    pub async fn start(settings: Settings) -> anyhow::Result<Self> {
        let proxies = settings.trusted_proxies.iter().copied();
        let mut builder = greenroom::Server::builder()
            .limits(settings.server.clone())
            .trusted_proxies(proxies.collect())
            .rejection_body(rejection::body);
        if settings.has(Role::Web) {
            for address in &settings.listen {
                builder = builder.listen(*address);
            }
        } else {
            builder = builder.without_address().loops(NonZeroUsize::MIN);
        }
        if let Some(address) = settings.status_listen {
            builder = builder.admin(address);
        }
        let cluster = node::join(&settings).await?;
        // Bound before anything is opened, so that a taken address costs nothing.
        let server = match builder.cluster(&cluster).bind() {
            Ok(server) => server,
            Err(error) => {
                node::leave(&cluster).await;
                return Err(error.into());
            }
        };
        let node = Node::start(settings, cluster).await?;
        if let Some(app) = node.app().filter(|app| app.settings.wants_sample()) {
            sample::fill(app)
                .await
                .context("the sample cannot be made")?;
        }
        Ok(Self { node, server })
    }

    /// Returns the state of the handlers; `None` without the role `web`.
    #[must_use]
    pub fn app(&self) -> Option<&App> {
        self.node.app()
    }

    /// Returns the TCP addresses of the listeners, with the ports that the system chose.
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

    /// Returns the handle that shuts the server down.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.server.handle()
    }

    /// Serves until the handle shuts it down, then leaves the cluster and stops the actors.
    ///
    /// # Errors
    /// Fails if a loop cannot be started, or ends by a fault of Greenroom.
    pub async fn serve(self) -> anyhow::Result<DrainReport> {
        let routes = self.node.app().cloned().map(router);
        let report = self.server.serve(routes.unwrap_or_default()).await;
        // Only now: requests give the actors work up to the last one.
        self.node.shut_down().await;
        Ok(report?)
    }
}

impl Debug for Server {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Server")
            .field("app", &self.app())
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

/// Builds all routes. Each module limits the bodies of its own routes.
pub fn router(app: App) -> Router {
    let health = Router::new()
        .route("/health", get(health))
        .route("/ready", get(ready))
        // A balancer must not take an overloaded replica for a dead one.
        .layer(Placement::auto().priority(Priority::Critical));
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

/// Browsers that have once come by https come by https only (RFC 6797).
const A_YEAR: HeaderValue = HeaderValue::from_static("max-age=31536000");

/// Header fields of every response that does not set them itself. Pages must list what they load.
pub(crate) const SECURITY_HEADERS: [(HeaderName, &str); 4] = [
    (
        CONTENT_SECURITY_POLICY,
        "default-src 'none'; frame-ancestors 'none'",
    ),
    (REFERRER_POLICY, "same-origin"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (X_FRAME_OPTIONS, "DENY"),
];

/// Responds to a balancer's health check.
///
/// It does not ask the storage: if that is down, it is down for all replicas, and their clear error
/// responses are better than none.
async fn health() -> &'static str {
    "fine\n"
}

/// Responds 200 if the storage responds.
async fn ready(State(app): State<App>) -> Result<&'static str, Failure> {
    app.store.ping().await?;
    Ok("ready\n")
}
