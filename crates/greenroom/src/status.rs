#[cfg(feature = "psgi")]
use std::any::Any;
use std::convert::Infallible;
use std::sync::Arc;

use axum::Json;
use axum::extract::FromRequestParts;
use greenroom_actor::{ActorSystem, ActorSystemStatus};
#[cfg(feature = "bus")]
use greenroom_bus::Bus;
#[cfg(feature = "cluster")]
use greenroom_cluster::{Cluster, ClusterStatus};
use greenroom_server::{LoopStatus, RequestHandle, UpgradeStatus};
#[cfg(all(
    feature = "admin",
    any(feature = "cluster", feature = "tls", feature = "tls-ring")
))]
use greenroom_stage::scope::Listing;
use greenroom_stage::{RouteStatus, StageStatus, StatusScope};
use http::request::Parts;
use serde::Serialize;

use crate::Readiness;
use crate::server::Sources;

/// Loops, stages, routes, actors, PSGI applications and proxies of a server at one moment: by
/// [`Handle::status`](crate::Handle::status), or, as an extractor, of the server that the request
/// came to. Taking it holds each lock for a moment only.
///
/// Of two servers in a process, each shows what it uses:
///
/// - its loops, and the routes that have had their first request on them;
/// - the stages on which those routes are placed, or to which their handlers have submitted work,
///   and the [default stage](crate::Stage::global), which all servers share;
/// - the actor systems [given to it](crate::ServerBuilder::actors), and the PSGI applications that
///   it was given to serve;
/// - the proxies that have had their first request on it.
///
/// The [upgrades](crate::Upgrades) are the process's, and each shows them.
///
/// What no server has used or was given yet is shown by all of them: a program with one server sees
/// all there is.
///
/// ```
/// use axum::{Router, routing::get};
/// use greenroom::Status;
///
/// async fn connections(status: Status) -> String {
///     let connections: usize = status.loops.iter().map(|each| each.connections).sum();
///     format!("{connections}\n")
/// }
///
/// let app: Router = Router::new().route("/connections", get(connections));
/// ```
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// The reasons why the server is not ready for requests, as at `/ready`; none if it is.
    pub not_ready: Vec<String>,
    /// The upgrades of the process; `None` if no server of it takes part in any.
    pub upgrades: Option<UpgradeStatus>,
    /// The loops that serve, in the order of their indexes.
    pub loops: Vec<LoopStatus>,
    /// The stages, the oldest first.
    pub stages: Vec<StageStatus>,
    /// The placed routes that have had a request, in the order of their first.
    pub routes: Vec<RouteStatus>,
    /// The actor systems, the oldest first.
    pub actors: Vec<ActorSystemStatus>,
    /// The PSGI applications, the oldest first. Only with the feature `psgi`.
    #[cfg(feature = "psgi")]
    pub psgi: Vec<greenroom_psgi::GatewayStatus>,
    /// The proxies with their upstreams, the oldest first. Only with the feature `proxy`.
    #[cfg(feature = "proxy")]
    pub proxies: Vec<greenroom_proxy::ProxyStatus>,
    /// The buses that were [given to it](crate::ServerBuilder::bus). Only with the feature `bus`.
    #[cfg(feature = "bus")]
    pub buses: Vec<greenroom_bus::Status>,
    /// The clusters that were [given to it](crate::ServerBuilder::cluster). Only with the feature
    /// `cluster`.
    #[cfg(feature = "cluster")]
    pub clusters: Vec<ClusterStatus>,
    /// The certificates of its TLS, and those
    /// [given to it](crate::ServerBuilder::certificate_status). Only with the feature `tls` or
    /// `tls-ring`.
    #[cfg(any(feature = "tls", feature = "tls-ring"))]
    pub certificates: Vec<greenroom_server::CertificateStatus>,
}

impl<S: Send + Sync> FromRequestParts<S> for Status {
    type Rejection = Infallible;

    /// Returns the status of the server that the request came to; under another server than
    /// Greenroom that of the process, without loops.
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let shown = RequestHandle::of(&parts.extensions).and_then(|handle| Shown::by(&handle));
        Ok(shown.map_or_else(Self::of_process, |shown| shown.status()))
    }
}

impl Status {
    pub(crate) fn of_process() -> Self {
        let greenroom_stage::Status { stages, routes } = greenroom_stage::status();
        Self {
            not_ready: Vec::new(),
            upgrades: UpgradeStatus::of_process(),
            loops: Vec::new(),
            stages,
            routes,
            actors: greenroom_actor::status(),
            #[cfg(feature = "psgi")]
            psgi: greenroom_psgi::status(),
            #[cfg(feature = "proxy")]
            proxies: greenroom_proxy::status(),
            #[cfg(feature = "bus")]
            buses: Vec::new(),
            #[cfg(feature = "cluster")]
            clusters: Vec::new(),
            #[cfg(any(feature = "tls", feature = "tls-ring"))]
            certificates: Vec::new(),
        }
    }
}

/// A handler that responds with the [`Status`] of its server as JSON, to be mounted where only
/// operators come: it names all routes and their load.
///
/// ```
/// use axum::{Router, routing::get};
/// use greenroom::{Priority, Placement};
///
/// let operators: Router = Router::new()
///     .route("/greenroom/status", get(greenroom::status_handler))
///     .layer(Placement::auto().priority(Priority::Critical)); // seen under overload too
/// ```
pub async fn status_handler(status: Status) -> Json<Status> {
    Json(status)
}

/// The parts of a server that its status shows. Its handles have it, and it is attached to the
/// server, for handlers to find by their request.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) server: greenroom_server::Handle,
    pub(crate) readiness: Readiness,
    scope: StatusScope,
    #[cfg_attr(
        not(any(
            feature = "bus",
            feature = "cluster",
            feature = "tls",
            feature = "tls-ring"
        )),
        expect(dead_code, reason = "without these features it is empty")
    )]
    sources: Sources,
}

/// The servers of the process, for its metrics.
#[cfg(all(
    feature = "admin",
    any(feature = "cluster", feature = "tls", feature = "tls-ring")
))]
static SERVERS: Listing<Shown> = Listing::new();

impl Shown {
    /// Returns those of all servers that the process has now.
    #[cfg(all(
        feature = "admin",
        any(feature = "cluster", feature = "tls", feature = "tls-ring")
    ))]
    pub(crate) fn of_process() -> Vec<Arc<Self>> {
        SERVERS.all()
    }

    /// Returns the certificates that the server's clients get.
    #[cfg(any(feature = "tls", feature = "tls-ring"))]
    pub(crate) fn certificates(&self) -> Vec<greenroom_server::CertificateStatus> {
        self.sources.certificates()
    }

    /// Returns the state of each cluster that the server was given.
    #[cfg(feature = "cluster")]
    pub(crate) fn clusters(&self) -> impl Iterator<Item = ClusterStatus> {
        self.sources.clusters.iter().map(Cluster::status)
    }

    /// Attaches a new one to the server, to which these actor systems and sources were given.
    pub(crate) fn attach(
        server: &mut greenroom_server::Server,
        actors: &[ActorSystem],
        readiness: Readiness,
        sources: Sources,
    ) -> Arc<Self> {
        let shown = Arc::new(Self {
            server: server.handle(),
            readiness,
            scope: StatusScope::default(),
            sources,
        });
        for system in actors {
            system.claim(&shown.scope);
        }
        #[cfg(all(
            feature = "admin",
            any(feature = "cluster", feature = "tls", feature = "tls-ring")
        ))]
        SERVERS.add(&shown);
        server.attach(Arc::<Self>::clone(&shown));
        shown
    }

    pub(crate) fn status(&self) -> Status {
        Status {
            actors: greenroom_actor::status_within(&self.scope),
            ..self.status_without_actors()
        }
    }

    /// Returns the state of all but the actors, of which there may be so many that it takes a
    /// while.
    pub(crate) fn status_without_actors(&self) -> Status {
        let greenroom_stage::Status { stages, routes } = self.scope.status();
        Status {
            not_ready: self.not_ready(),
            upgrades: UpgradeStatus::of_process(),
            loops: self.server.loops(),
            stages,
            routes,
            actors: Vec::new(),
            #[cfg(feature = "psgi")]
            psgi: greenroom_psgi::status_within(&self.scope),
            #[cfg(feature = "proxy")]
            proxies: greenroom_proxy::status_within(&self.scope),
            #[cfg(feature = "bus")]
            buses: self.sources.buses.iter().map(Bus::status).collect(),
            #[cfg(feature = "cluster")]
            clusters: self.clusters().collect(),
            #[cfg(any(feature = "tls", feature = "tls-ring"))]
            certificates: self.certificates(),
        }
    }

    /// Returns the reasons why the server is not ready; none if it is.
    pub(crate) fn not_ready(&self) -> Vec<String> {
        let server = &self.server;
        self.readiness
            .reasons(server.has_begun(), server.is_draining())
    }

    /// Claims the PSGI applications that the server is given to serve.
    #[cfg(feature = "psgi")]
    pub(crate) fn claim(&self, app: &dyn Any) {
        if let Some(gateway) = app.downcast_ref::<greenroom_psgi::Gateway>() {
            gateway.claim(&self.scope);
        } else if let Some(mounts) = app.downcast_ref::<greenroom_psgi::Mounts>() {
            for gateway in mounts.gateways() {
                gateway.claim(&self.scope);
            }
        }
    }

    fn by(handle: &RequestHandle) -> Option<Arc<Self>> {
        Arc::clone(handle.attached()?).downcast().ok()
    }
}

/// Has placed routes belong to the server that has their first request.
pub(crate) fn tell_scopes() {
    greenroom_stage::find_scopes_by(|| {
        let shown = Shown::by(&RequestHandle::current()?)?;
        Some(shown.scope.clone())
    });
}
