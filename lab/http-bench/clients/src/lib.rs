//! The common part of the benchmark's own clients: targets of load, parsing of responses, TLS,
//! outcomes of requests.

mod floods;
mod handshakes;
mod outcomes;
pub mod response;
mod target;
mod tls;

pub use floods::Flood;
pub use handshakes::Handshakes;
pub use outcomes::{Outcome, Outcomes};
pub use target::Target;
pub use tls::{Offer, client_hello, server_name};
