//! TLS between a socket and its connection, by rustls.
//!
//! An idle stream owns no buffer: ciphertext is read into and sent from the buffers of the thread
//! that polls it.

mod buffers;
mod certificates;
mod client;
mod config;
mod error;
mod hello;
mod info;
mod pem;
mod server_name;
mod session;
mod status;
mod stream;

pub use client::client_tls;
pub use config::{ClientCertificates, Tls, TlsBuilder};
pub use error::TlsError;
pub(crate) use hello::Hello;
pub use info::TlsInfo;
pub use status::CertificateStatus;
pub(crate) use stream::TlsStream;

/// The protocol in which CAs ask whether a name is ours (RFC 8737, 6.2).
pub(crate) const ACME_PROTOCOL: &[u8] = b"acme-tls/1";
