//! `greenroom bench` under test, and servers that respond as a test prescribes.
#![allow(
    dead_code,
    unused_imports,
    reason = "each test program uses its own part of this module"
)]

pub(crate) mod finished;
pub(crate) mod fixture;
pub(crate) mod measuring;
pub(crate) mod tls;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU8, Ordering};

pub(crate) use finished::Finished;
pub(crate) use fixture::{Fixture, Reply, Request, response};
pub(crate) use measuring::Measuring;

const PORT: u16 = 5000;

/// Returns an address of this machine that no other test or program listens on: a port that was
/// released may be given to another at once, which would then meet this one's clients.
pub(crate) fn address() -> SocketAddr {
    static NEXT: AtomicU8 = AtomicU8::new(1);
    let [_, _, high, low] = std::process::id().to_be_bytes();
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    ([127, high | 128, low, number], PORT).into()
}

/// Runs `greenroom bench` to its end.
pub(crate) fn bench(arguments: &[&str]) -> Finished {
    Measuring::start(arguments).finish()
}

/// Runs it without progress, and with this last argument.
pub(crate) fn quiet(flags: &[&str], url: &str) -> Finished {
    bench(&[&["-q"], flags, &[url]].concat())
}
