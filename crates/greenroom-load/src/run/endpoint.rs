//! The resolved addresses of connections.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;

use crate::plan::Target;

/// A target with its address and its TLS settings.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    pub(crate) target: Target,
    pub(crate) address: Address,
    pub(crate) tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
}

/// An address of a stream socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    Tcp(SocketAddr),
    Unix(PathBuf),
}
