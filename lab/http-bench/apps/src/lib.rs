//! The applications that the benchmark's servers serve, and what all these servers share: flags,
//! listener, runtime.
//!
//! Peers and Greenroom take the same `Router` and the same plain responses from here, so that a
//! difference between two servers is not a difference between two applications.

mod plain;
mod process;
mod router;

pub use plain::{echo, hello};
pub use process::{App, Options, TlsOptions, announce, listen, listen_on, runtime};
pub use router::router;

/// The body of every small response.
pub const HELLO: &str = "Hello, world!";

/// The body of the response to the tutorial's form.
pub const ECHO: &str = "You said: hello";

/// The time for which an echo waits before it responds.
pub const ECHO_WAIT: std::time::Duration = std::time::Duration::from_secs(2);
