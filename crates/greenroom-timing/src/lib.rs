//! The route of a request and where its time goes, told by whoever knows it to the server of its
//! connection.
//!
//! Routers, stages and gateways do not know the server that they run under, and the server knows
//! none of them; what passes between them is here.

mod route;
mod timing;

pub use route::{during, interned, tell_route};
pub use timing::{Times, Timing};
