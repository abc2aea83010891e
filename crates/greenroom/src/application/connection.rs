use std::net::SocketAddr;

use axum::extract::connect_info::Connected;
use greenroom_server::{Address, ConnectionInfo};

/// A connection that was accepted, as [`Connected`] sees it.
///
/// `into_make_service_with_connect_info::<SocketAddr>()` works as it does with axum; types of
/// your own implement axum's `Connected<IncomingConnection>`.
#[derive(Clone, Debug)]
pub struct IncomingConnection(ConnectionInfo);

impl IncomingConnection {
    /// The client's address; `None` on a Unix socket.
    #[must_use]
    pub fn peer(&self) -> Option<SocketAddr> {
        self.0.peer
    }

    /// The address that the client connected to, as the server listens on it.
    #[must_use]
    pub fn local(&self) -> &Address {
        &self.0.local
    }
}

impl From<ConnectionInfo> for IncomingConnection {
    fn from(info: ConnectionInfo) -> Self {
        Self(info)
    }
}

impl Connected<IncomingConnection> for SocketAddr {
    /// The client's address; that of a client on a Unix socket is `0.0.0.0:0`.
    fn connect_info(connection: IncomingConnection) -> Self {
        let none = SocketAddr::from(([0, 0, 0, 0], 0));
        connection.peer().unwrap_or(none)
    }
}
