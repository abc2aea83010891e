//! The part of Greenroom's benchmark servers around their application.

use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;

use greenroom::{Address, IntoApp, Server, ServerBuilder, Tls};
use http_bench_apps::{TlsOptions, announce, runtime};

/// Serves on one loop until the process ends; without an access log, as its peers have none.
///
/// # Errors
/// When the port is taken or the loop cannot be started.
pub fn serve<A, Kind>(port: u16, app: A) -> anyhow::Result<()>
where
    A: IntoApp<Kind>,
{
    run(builder(port), app)
}

/// Serves as [`serve`] does, and drains on SIGTERM with the default settings.
///
/// # Errors
/// When the port is taken, or the loop cannot be started, or signals cannot be caught.
pub fn serve_until_told<A, Kind>(port: u16, app: A) -> anyhow::Result<()>
where
    A: IntoApp<Kind>,
{
    run(builder(port).shutdown_on_signals(), app)
}

/// Serves as [`serve`] does, over TLS at one address and without at the other.
///
/// # Errors
/// When an address is taken or the loop cannot be started.
pub fn serve_tls<A, Kind>(options: &TlsOptions, tls: Tls, app: A) -> anyhow::Result<()>
where
    A: IntoApp<Kind>,
{
    let builder = on_one_loop()
        .listen(Address::from(options.tls))
        .listen_plain(Address::from(options.plain))
        .tls(tls);
    run(builder, app)
}

fn builder(port: u16) -> ServerBuilder {
    on_one_loop().listen(Address::from(SocketAddr::from((Ipv4Addr::LOCALHOST, port))))
}

fn on_one_loop() -> ServerBuilder {
    Server::builder().loops(NonZeroUsize::MIN).access_log(false)
}

fn run<A, Kind>(builder: ServerBuilder, app: A) -> anyhow::Result<()>
where
    A: IntoApp<Kind>,
{
    runtime()?.block_on(async {
        let server = builder.bind()?;
        if let Some(Address::Tcp(address)) = server.local_addresses().first() {
            announce(*address)?;
        }
        server.serve(app).await?;
        Ok(())
    })
}
