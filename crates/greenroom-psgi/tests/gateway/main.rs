//! The gateway with real Perl workers, as a client sees it.

#![allow(clippy::unwrap_used, reason = "a test may end where it stands")]

mod chunked;
mod environment;
mod extensions;
mod fairness;
mod faults;
mod keepalive;
mod leaving;
mod load;
mod log;
mod losses;
mod notes;
mod operators;
mod overload;
mod recall;
mod responses;
mod rig;
mod routed;
mod sockets;
mod streaming;
mod strictness;
mod uploads;
mod waiting;
