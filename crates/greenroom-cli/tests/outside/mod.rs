//! Tools of the tests with foreign programs: a server, the programs that send requests, and
//! waiting.
#![allow(
    dead_code,
    reason = "each test program uses its own part of this module"
)]

pub(crate) mod http;
pub(crate) mod probe;
pub(crate) mod server;
pub(crate) mod tools;
pub(crate) mod wait;
