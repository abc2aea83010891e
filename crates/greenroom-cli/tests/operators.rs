//! The tools of operators: `greenroom status`, health and readiness, actions, and the page under
//! overload and in a browser.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "operators/actions.rs"]
mod actions;
mod authority;
#[path = "operators/browser.rs"]
mod browser;
mod outside;
#[path = "operators/overload.rs"]
mod overload;
#[allow(dead_code, reason = "these tests use a part of it")]
mod program;
#[path = "operators/readiness.rs"]
mod readiness;
#[path = "operators/status.rs"]
mod status;
#[path = "operators/upgraded.rs"]
mod upgraded;
#[path = "upgrade/versions.rs"]
#[allow(dead_code, reason = "these tests use a part of it")]
mod versions;

use std::net::SocketAddr;
use std::time::Duration;

use outside::http::{self, Response};
use outside::server::Server;
use readiness::await_ready;

/// The time that a client gives a response; only a failing test waits so long.
const PATIENCE: Duration = Duration::from_mins(1);

/// A server that is ready, with an admin server.
struct Operated {
    server: Server,
}

impl Operated {
    fn start(flags: &[&str]) -> Self {
        let flags = [&["--status-listen", "127.0.0.1:0"], flags].concat();
        Self::ready(Server::with_flags_listening_on(&flags, 1))
    }

    /// Starts it by a file of sites, which names both addresses.
    fn of_file(file: &str) -> Self {
        Self::ready(Server::of_sites(file, 2))
    }

    fn ready(server: Server) -> Self {
        let operated = Self { server };
        await_ready(operated.admin(), 200, "ready\n");
        operated
    }

    fn admin(&self) -> SocketAddr {
        self.server.address_of(1)
    }

    fn ask(&self, path: &str) -> Response {
        http::get(self.admin(), path, PATIENCE).expect(path)
    }
}
