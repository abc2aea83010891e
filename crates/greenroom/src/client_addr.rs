use std::convert::Infallible;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

use axum::extract::{ConnectInfo, FromRequestParts, OptionalFromRequestParts};
use axum::response::{IntoResponse, Response};
use greenroom_server::ForwardedFor;
use greenroom_stage::Client;
use http::request::Parts;
use http::{Extensions, StatusCode};

/// The address of the client that a request came from: an extractor of axum.
///
/// It is the address that is connected, or the one that a trusted proxy names
/// ([`ServerBuilder::trusted_proxies`](crate::ServerBuilder::trusted_proxies),
/// [`Serve::trusted_proxies`](crate::Serve::trusted_proxies)), in a header of the request or in the
/// header of its connection (PROXY protocol). An IPv4 address that is mapped to IPv6 is one of IPv4
/// here.
///
/// ```
/// use axum::{Router, routing::get};
/// use greenroom::ClientAddr;
///
/// async fn whoami(client: ClientAddr) -> String {
///     format!("you are {}\n", client.ip())
/// }
///
/// let app: Router = Router::new().route("/whoami", get(whoami));
/// ```
///
/// Where it is not known the response is 500 ([`ClientAddrUnknown`]); `Option<ClientAddr>` is
/// `None` then. It is unknown
/// - on a Unix socket, unless that is trusted (`unix`) and its peer names a client;
/// - in a task of its own that a layer has spawned for the request (`tokio::spawn`), unless a
///   trusted proxy sent it, or the application is served
///   `into_make_service_with_connect_info::<SocketAddr>()`;
/// - under `axum::serve`, unless the application is served as just said. No proxy is trusted there.
///
/// A request that no trusted proxy sent pays nothing for it; one that a proxy sent costs the
/// reading of the header and an allocation of 20 bytes, even if no handler extracts it, as stages
/// are fair between clients by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClientAddr(ForwardedFor);

impl ClientAddr {
    /// Returns the address.
    #[must_use]
    pub fn ip(self) -> IpAddr {
        self.0.ip
    }

    /// Returns the port, if it is known: proxies send it seldom.
    #[must_use]
    pub fn port(self) -> Option<u16> {
        self.0.port
    }

    /// Returns the address of the client of the request that has these extensions and is being
    /// worked on: for layers, which see a request and extract nothing. `None` if it is not known.
    #[must_use]
    pub fn of(extensions: &Extensions) -> Option<Self> {
        let forwarded = extensions.get::<ForwardedFor>().copied();
        let connected = || Client::current().sender().map(of_socket);
        let in_extensions = || {
            let ConnectInfo(peer) = extensions.get::<ConnectInfo<SocketAddr>>()?;
            // Axum's stand-in for the address of a client on a Unix socket.
            (!peer.ip().is_unspecified()).then(|| of_socket(*peer))
        };
        forwarded
            .or_else(connected)
            .or_else(in_extensions)
            .map(Self)
    }
}

fn of_socket(peer: SocketAddr) -> ForwardedFor {
    ForwardedFor {
        ip: peer.ip().to_canonical(),
        port: (peer.port() != 0).then_some(peer.port()),
    }
}

impl fmt::Display for ClientAddr {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for ClientAddr {
    type Rejection = ClientAddrUnknown;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ClientAddrUnknown> {
        Self::of(&parts.extensions).ok_or(ClientAddrUnknown(()))
    }
}

impl<S: Send + Sync> OptionalFromRequestParts<S> for ClientAddr {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Option<Self>, Infallible> {
        Ok(Self::of(&parts.extensions))
    }
}

/// The rejection of a request whose [`ClientAddr`] is not known: 500, as the server or the proxy in
/// front of it is not set up for what the application needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the client's address is not known: by a Unix socket a trusted proxy has to tell it \
     (`trusted_proxies`), and under axum::serve \
     `into_make_service_with_connect_info::<SocketAddr>()`"
)]
pub struct ClientAddrUnknown(());

impl IntoResponse for ClientAddrUnknown {
    fn into_response(self) -> Response {
        (StatusCode::INTERNAL_SERVER_ERROR, self.to_string()).into_response()
    }
}
