//! TLS certificates by ACME ([RFC 8555](https://www.rfc-editor.org/rfc/rfc8555)), obtained and
//! renewed while a server runs.
//!
//! ```no_run
//! use greenroom_acme::{ACME_TLS_ALPN, Acme};
//! use rustls::ServerConfig;
//! use std::sync::Arc;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let acme = Acme::builder("/var/lib/greenroom/certificates")
//!     .agree_to_terms_of_service()
//!     .contact("ada@example.org")
//!     .certificate(["example.org", "www.example.org"])
//!     .build()?;
//! let provider = Arc::new(rustls::crypto::ring::default_provider());
//! let mut tls = ServerConfig::builder_with_provider(provider)
//!     .with_safe_default_protocol_versions()?
//!     .with_no_client_auth()
//!     .with_cert_resolver(acme.certificates());
//! tls.alpn_protocols = vec![b"http/1.1".to_vec(), ACME_TLS_ALPN.to_vec()];
//! let plain_http = acme.http01(); // a layer for what listens on port 80
//! tokio::spawn(acme.run());
//! # Ok(())
//! # }
//! ```
//!
//! - [`Acme`] orders what is missing and renews what is due, until its future is dropped.
//! - [`AcmeHandle`] changes the names meanwhile.
//! - [`Certificates`] gives rustls the certificate for the name that a client asks for.
//! - [`Http01`] responds to the authority on port 80; on port 443 the certificates do it
//!   themselves.
//! - [`Status`] tells what is valid until when, and what failed for which reason.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/certificates.md")]
mod guide {}

mod account;
mod acme;
mod builder;
mod certificate;
mod certificates;
mod challenges;
mod client;
mod clock;
mod failed_orders;
mod failure;
mod group;
mod handle;
mod http01;
mod limits;
mod name;
mod order;
mod schedule;
mod status;
mod store;

pub use acme::Acme;
pub use builder::{
    AcmeBuilder, BuildError, GROUPS_MAX, LETS_ENCRYPT, LETS_ENCRYPT_STAGING, NAMES_MAX,
};
pub use certificates::{ACME_TLS_ALPN, Certificates};
pub use challenges::ChallengeKind;
pub use client::BODY_BYTES_MAX;
pub use clock::Clock;
pub use failed_orders::FAILED_ORDERS_MAX;
pub use handle::AcmeHandle;
pub use http01::{Http01, Http01Body, Http01Future, Http01Service, PATH_PREFIX};
pub use limits::Limits;
pub use name::NameError;
pub use schedule::{ASK_AGAIN_MAX, ASK_AGAIN_MIN, SAVE_AGAIN_MAX};
pub use status::{CertificateStatus, GroupStatus, State, Status};
pub use store::{FILE_BYTES_MAX, LOCK_LOOK, LOCK_WAIT_MAX, StoreError};
