//! The common parts of Greenroom's two benchmark servers around their application.

use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;

use greenroom::{Address, Application, Server};
use http_bench_apps::{announce, runtime};

/// Serves on one loop until the process ends; without an access log, as its peers have none.
///
/// # Errors
/// If the port is taken or the loop cannot be started.
pub fn serve<A, Kind>(port: u16, app: A) -> anyhow::Result<()>
where
    A: Application<Kind>,
{
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let server = Server::builder()
        .listen(Address::from(address))
        .loops(NonZeroUsize::MIN)
        .access_log(false)
        .bind()?;
    if let Some(Address::Tcp(address)) = server.local_addresses().first() {
        announce(*address)?;
    }
    runtime()?.block_on(server.serve(app))?;
    Ok(())
}
