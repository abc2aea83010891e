//! TLS: servers that listen over it and without, with one certificate for all.

mod flood;
mod handshakes;
mod idle;
mod requests;
mod site;

pub(crate) use flood::flood;
pub(crate) use handshakes::{full, resumed};
pub(crate) use idle::idle;
pub(crate) use requests::{h2, keepalive};
