//! The settings that a [`Server`](super::Server) and a [`Serve`](crate::Serve) share.

use greenroom_actor::ActorSystem;
use greenroom_server::Upgrades;
#[cfg(feature = "admin")]
use greenroom_server::{Address, AddressError};
use greenroom_stage::ClientKey;

use super::Sources;
use crate::Readiness;
#[cfg(feature = "admin")]
use crate::admin::AdminToken;

/// The settings of a server.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    pub(crate) server: greenroom_server::ServerBuilder,
    pub(crate) client_key: Option<ClientKey>,
    pub(crate) actors: Vec<ActorSystem>,
    pub(crate) readiness: Readiness,
    pub(crate) sources: Sources,
    pub(crate) upgrades: Option<Upgrades>,
    pub(crate) upgrade_on_signal: bool,
    #[cfg(feature = "admin")]
    pub(crate) admin: Option<Result<Address, AddressError>>,
    #[cfg(feature = "admin")]
    pub(crate) admin_token: Option<AdminToken>,
}

/// Defines the methods of a type that set its [`Settings`].
macro_rules! setters {
    () => {
        /// Sets limits and time-outs. Default: [`Limits::default`](crate::Limits).
        pub fn limits(mut self, limits: $crate::Limits) -> Self {
            self.settings.server = self.settings.server.limits(limits);
            self
        }

        /// Sets the number of loops, each on a thread of its own. Default: one for each core.
        pub fn loops(mut self, loops: std::num::NonZeroUsize) -> Self {
            self.settings.server = self.settings.server.loops(loops);
            self
        }

        /// Logs each request at level `info`, target `greenroom::access`: see
        /// [`greenroom_server::ServerBuilder::access_log`] for its fields. Default: off.
        pub fn access_log(mut self, on: bool) -> Self {
            self.settings.server = self.settings.server.access_log(on);
            self
        }

        /// Logs one request of so many, and all that failed or were slow: see
        /// [`greenroom_server::ServerBuilder::access_log_sample`]. Default: 1, all.
        pub fn access_log_sample(mut self, one_of: std::num::NonZeroU32) -> Self {
            self.settings.server = self.settings.server.access_log_sample(one_of);
            self
        }

        /// Gives each request an id, in the field `x-request-id` and in the extensions
        /// ([`RequestId`](crate::RequestId)): see
        /// [`greenroom_server::ServerBuilder::request_ids`]. Default: off.
        pub fn request_ids(mut self, on: bool) -> Self {
            self.settings.server = self.settings.server.request_ids(on);
            self
        }

        /// Logs where the time of each request went that took this long, target
        /// `greenroom::slow`: see [`greenroom_server::ServerBuilder::slow_log`] for its fields.
        /// Default: `None`.
        pub fn slow_log(mut self, least: Option<std::time::Duration>) -> Self {
            self.settings.server = self.settings.server.slow_log(least);
            self
        }

        /// Says in responses, by `Server-Timing`, where the time went until they began. Default:
        /// off.
        pub fn server_timing(mut self, which: $crate::ServerTiming) -> Self {
            self.settings.server = self.settings.server.server_timing(which);
            self
        }

        /// Traces requests, one of so many unless they came with a `traceparent`, and tells the
        /// observer of each that is over: see
        /// [`greenroom_server::ServerBuilder::trace_requests`]. Default: off.
        pub fn trace_requests(
            mut self,
            one_of: std::num::NonZeroU32,
            observer: impl $crate::RequestObserver + 'static,
        ) -> Self {
            self.settings.server = self.settings.server.trace_requests(one_of, observer);
            self
        }

        /// Says whose `traceparent` is taken, if requests are traced: see
        /// [`greenroom_server::ServerBuilder::trace_parents`]. Default: that of trusted proxies.
        pub fn trace_parents(mut self, parents: $crate::TraceParents) -> Self {
            self.settings.server = self.settings.server.trace_parents(parents);
            self
        }

        /// Counts requests and their durations by route, method and status, for
        /// [`RequestMetrics::now`](crate::RequestMetrics::now) and for `install_metrics` to show.
        /// Default: off; with an admin server on.
        pub fn request_metrics(mut self, on: bool) -> Self {
            self.settings.server = self.settings.server.request_metrics(on);
            self
        }

        /// Responds to clients that end their side of the connection while their request is under
        /// way, however long it takes. Over TCP such a client cannot be told from one that has
        /// left. So by default (off) its request is dropped at once, unless the client ended its
        /// side within 250 to 500 ms of its request: then the response may take that long to begin,
        /// and its body goes on until it pauses for 20 ms. A client that reset its connection is
        /// dropped in any case.
        pub fn half_close(mut self, on: bool) -> Self {
            self.settings.server = self.settings.server.half_close(on);
            self
        }

        /// Trusts proxies that name the client of a request: see
        /// [`TrustedProxies`](crate::TrustedProxies), and [`ClientAddr`](crate::ClientAddr) for the
        /// consequences. Default: none.
        pub fn trusted_proxies(mut self, proxies: $crate::TrustedProxies) -> Self {
            self.settings.server = self.settings.server.trusted_proxies(proxies);
            self
        }

        /// Speaks TLS, on all listeners but those of
        /// [`listen_plain`](crate::ServerBuilder::listen_plain) and of acceptors: see
        /// [`greenroom_server::ServerBuilder::tls`]. Handlers find what was agreed upon, such as a
        /// client's certificate, as axum's
        /// `Extension<Arc<TlsInfo>>`. Needs the feature `tls` or
        /// `tls-ring`.
        ///
        /// ```no_run
        /// let tls = greenroom::Tls::builder()
        ///     .certificate("example.org.pem", "example.org.key")
        ///     .build()?;
        /// let server = greenroom::Server::builder().listen("[::]:443").tls(tls);
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        #[cfg(any(feature = "tls", feature = "tls-ring"))]
        pub fn tls(mut self, tls: $crate::Tls) -> Self {
            self.settings.sources.tls = Some(tls.clone());
            self.settings.server = self.settings.server.tls(tls);
            self
        }

        /// Serves HTTP/3, too, where TLS is spoken; experimental. Default: off. Needs the feature
        /// `http3`. See
        /// [`greenroom_server::ServerBuilder::http3`].
        #[cfg(feature = "http3")]
        pub fn http3(mut self, on: bool) -> Self {
            self.settings.server = self.settings.server.http3(on);
            self
        }

        /// Sets the key of a request's client, for stages to be fair between clients; by default,
        /// it is the address that the request came from ([`ClientAddr`](crate::ClientAddr)). The
        /// key is computed for each request, before the application; placements with a
        /// [`client_key`](crate::Placement::client_key) of their own use that one. It does not
        /// apply to an [`App`](crate::App): that names the client of the work it submits to stages
        /// itself.
        pub fn client_key(mut self, client_key: $crate::ClientKey) -> Self {
            self.settings.client_key = Some(client_key);
            self
        }

        /// Sets the body of each response that is made in the application's place, such as
        /// `application/problem+json` or a page: 400, 408, 413, 414, 417, 431, 501 and 505 to what
        /// is no request, 429 and 503 beyond a limit, 500 for a handler that panicked; by the
        /// server, by placements and stages, and by Perl applications; over HTTP/1 and HTTP/2. With
        /// [`TextRejections`](crate::TextRejections) also of those in plain text that axum's
        /// extractors and layers make. `None` leaves the default, which is a line of text.
        ///
        /// It is called on a loop, for rejections only, so it should return at once. Connections
        /// that are rejected unread (503 of a server that is behind, 429 of an address with too
        /// many connections) all get the body that it returns for the first of each kind. Beyond
        /// [`REJECTION_BYTES_MAX`](crate::REJECTION_BYTES_MAX), and if it panics, the default is
        /// sent, and the log says so.
        ///
        /// ```
        /// use greenroom::{Rejection, RejectionBody};
        ///
        /// fn page(rejection: &Rejection<'_>) -> Option<RejectionBody> {
        ///     let page = format!("<!doctype html><h1>{}</h1>", rejection.status);
        ///     Some(RejectionBody::new("text/html; charset=utf-8", page))
        /// }
        ///
        /// let server = greenroom::Server::builder().rejection_body(page);
        /// ```
        pub fn rejection_body<F>(mut self, body: F) -> Self
        where
            F: Fn(&$crate::Rejection<'_>) -> Option<$crate::RejectionBody> + Send + Sync + 'static,
        {
            let server = self.settings.server.rejection_body(body);
            self.settings.server = server.rejection_detail($crate::rejection::detail);
            self
        }

        /// Catches SIGTERM and SIGINT from when it begins to serve: the first one drains, a second
        /// one aborts (under `start_server` only SIGINT). Default: off.
        pub fn shutdown_on_signals(mut self) -> Self {
            self.settings.server = self.settings.server.shutdown_on_signals();
            self
        }

        /// Ends an actor system when the server has drained: each actor handles what is in its
        /// mailbox, for [`drain_deadline`](crate::Limits::drain_deadline) at most. Systems that are
        /// not given to a server go on.
        pub fn actors(mut self, system: $crate::actor::ActorSystem) -> Self {
            self.settings.actors.push(system);
            self
        }

        /// Has the server tell by this [`Readiness`](crate::Readiness) when it is ready. Default:
        /// one of its own, which [`Server::readiness`](crate::Server::readiness) returns.
        pub fn readiness(mut self, readiness: &$crate::Readiness) -> Self {
            self.settings.readiness = readiness.clone();
            self
        }

        /// Shows the state of this bus in the server's [`Status`](crate::Status), beside those
        /// given before.
        #[cfg(feature = "bus")]
        pub fn bus(mut self, bus: &$crate::bus::Bus) -> Self {
            self.settings.sources.buses.push(bus.clone());
            self
        }

        /// Shows the state of this cluster in the server's [`Status`](crate::Status), beside those
        /// given before. The server does not end it: [`drain`](crate::cluster::Cluster::drain) it
        /// when the server has drained.
        #[cfg(feature = "cluster")]
        pub fn cluster(mut self, cluster: &$crate::cluster::Cluster) -> Self {
            self.settings.sources.clusters.push(cluster.clone());
            self
        }

        /// Shows the certificates that `status` returns in the server's
        /// [`Status`](crate::Status), after those of its [TLS](Self::tls): for those of a
        /// [resolver](crate::TlsBuilder::resolver), such as one that obtains certificates. It is
        /// called for each status, so it should return at once.
        #[cfg(any(feature = "tls", feature = "tls-ring"))]
        pub fn certificate_status<F>(mut self, status: F) -> Self
        where
            F: Fn() -> Vec<$crate::CertificateStatus> + Send + Sync + 'static,
        {
            self.settings.sources.obtained = Some(Box::new(status));
            self
        }

        /// Shows the server to operators at an address of their own, on a loop of its own: a page
        /// at `/`, the same as text at `/greenroom/status.txt`, the [`Status`](crate::Status) at
        /// `/greenroom/status`, metrics at `/greenroom/metrics`, and `/health` and `/ready` for
        /// load balancers. It is best an address that only operators reach: the page names routes,
        /// their load and their clients. By default they are shown nowhere. Needs the feature
        /// `admin`.
        #[cfg(feature = "admin")]
        pub fn admin<A>(mut self, address: A) -> Self
        where
            A: TryInto<$crate::Address, Error: Into<$crate::AddressError>>,
        {
            self.settings.admin = Some(address.try_into().map_err(Into::into));
            self.request_metrics(true)
        }

        /// Lets who has this token take [actions](crate::Server::admin_actions) at the admin
        /// address, such as to drain the server. Default: nobody can.
        #[cfg(feature = "admin")]
        pub fn admin_token(mut self, token: $crate::AdminToken) -> Self {
            self.settings.admin_token = Some(token);
            self
        }
    };
}

pub(crate) use setters;
