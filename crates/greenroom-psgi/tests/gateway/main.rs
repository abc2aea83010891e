//! The gateway with real Perl workers: what a client sees.

#![allow(clippy::unwrap_used, reason = "a test may end where it stands")]

mod answers;
mod environment;
mod recall;
mod rig;
mod streaming;
mod uploads;
mod waiting;
