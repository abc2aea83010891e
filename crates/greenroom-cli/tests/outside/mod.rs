//! What the tests with foreign programs share: a server to ask, the tools that ask, and waiting.
#![allow(
    dead_code,
    reason = "each test program uses its own part of this module"
)]

pub(crate) mod http;
pub(crate) mod probe;
pub(crate) mod server;
pub(crate) mod tools;
pub(crate) mod wait;
