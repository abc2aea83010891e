//! What both of Greenroom's benchmark servers do around their application.

use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;

use greenroom::{Address, IntoApp, Server};
use http_bench_apps::{announce, runtime};

/// Serves on one loop until the process ends; without an access log, as its peers have none.
///
/// # Errors
/// When the port is taken or the loop cannot be started.
pub fn serve<A, Kind>(port: u16, app: A) -> anyhow::Result<()>
where
    A: IntoApp<Kind>,
{
    let server = bind(port)?;
    runtime()?.block_on(server.serve(app))?;
    Ok(())
}

/// Serves as [`serve`] does, and drains on SIGTERM, with the settings that everybody has who sets none.
///
/// # Errors
/// When the port is taken, or the loop cannot be started, or signals cannot be caught.
pub fn serve_until_told<A, Kind>(port: u16, app: A) -> anyhow::Result<()>
where
    A: Application<Kind>,
{
    runtime()?.block_on(async {
        let server = bind(port)?;
        greenroom::end_on_signals(server.handle())?;
        server.serve(app).await?;
        Ok(())
    })
}

fn bind(port: u16) -> anyhow::Result<Server> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let server = Server::builder()
        .listen(Address::from(address))
        .loops(NonZeroUsize::MIN)
        .access_log(false)
        .bind()?;
    if let Some(Address::Tcp(address)) = server.local_addresses().first() {
        announce(*address)?;
    }
    Ok(server)
}
