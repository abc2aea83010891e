//! `greenroom bench` under test, and servers that answer as a test tells them to.
#![allow(
    dead_code,
    unused_imports,
    reason = "each test program uses its own part of this module"
)]

pub(crate) mod finished;
pub(crate) mod fixture;
pub(crate) mod measuring;
pub(crate) mod tls;

pub(crate) use finished::Finished;
pub(crate) use fixture::{Fixture, Reply, answer};
pub(crate) use measuring::Measuring;

/// Runs `greenroom bench` to its end.
pub(crate) fn bench(arguments: &[&str]) -> Finished {
    Measuring::start(arguments).finish()
}

/// The same without progress, and with this last argument.
pub(crate) fn quiet(flags: &[&str], url: &str) -> Finished {
    bench(&[&["-q"], flags, &[url]].concat())
}
