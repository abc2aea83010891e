//! An application behind Greenroom's own server.

use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;

use clap::Parser;
use greenroom::{Address, OnLoops, Server};
use http_bench_apps::{announce, runtime};
use isolation_bench_programs::{Application, Shape, method_router};
use tower_http::normalize_path::NormalizePath;

/// Its flags.
#[derive(Debug, Parser)]
struct Options {
    /// Rule that decides where the handlers run
    #[arg(long, value_enum)]
    application: Application,
    /// Threads that serve connections
    #[arg(long, default_value = "1")]
    loops: NonZeroUsize,
    /// Keep the router on the loops, unplaced
    #[arg(long)]
    unplaced: bool,
    /// Shape in which the application is handed over
    #[arg(long, value_enum, default_value_t = Shape::Router, conflicts_with = "unplaced")]
    shape: Shape,
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let server = Server::builder()
        .listen(Address::from(address))
        .loops(options.loops)
        .access_log(false)
        .bind()?;
    if let Some(Address::Tcp(address)) = server.local_addresses().first() {
        announce(*address)?;
    }
    let router = options.application.router();
    let runtime = runtime()?;
    if options.unplaced {
        runtime.block_on(server.serve(OnLoops(router)))?;
        return Ok(());
    }
    match options.shape {
        Shape::MakeService => {
            let app = router.into_make_service_with_connect_info::<SocketAddr>();
            runtime.block_on(server.serve(app))?;
        }
        Shape::MethodRouter => {
            runtime.block_on(server.serve(method_router()))?;
        }
        Shape::NormalizePath => {
            let app = NormalizePath::trim_trailing_slash(router);
            runtime.block_on(server.serve(app))?;
        }
        Shape::Router => {
            runtime.block_on(server.serve(router))?;
        }
    }
    Ok(())
}
