//! The server of the load generator's own test, which stands still for the last second of every
//! five.

#[path = "../../../../../crates/greenroom-load/tests/fixture/stall.rs"]
mod stall;

use std::io::{self, Write};
use std::net::{Ipv4Addr, TcpListener};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

fn main() -> anyhow::Result<()> {
    allow_all_descriptors()?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let mut out = io::stdout();
    writeln!(out, "listening on {}", listener.local_addr()?)?;
    out.flush()?;
    stall::serve(listener)?;
    Ok(())
}

/// Raises the limit of descriptors: each request that comes during a stall has a connection of its
/// own.
fn allow_all_descriptors() -> io::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    Ok(setrlimit(Resource::Nofile, raised)?)
}
