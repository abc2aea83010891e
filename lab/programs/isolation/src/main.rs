//! A server whose handlers are placed in different ways, behind `axum::serve` or Greenroom.

mod application;
mod handlers;

use std::net::SocketAddr;
use std::num::NonZeroUsize;

use axum::ServiceExt;
use axum::extract::Request;
use axum::serve::ListenerExt;
use clap::{Parser, ValueEnum};
use greenroom::{Address, OnLoops, Server};
// Of the lab's features: else valgrind stops the server at its first reading of the clock.
use rustix as _;
use tokio::net::{TcpListener, TcpSocket};
use tokio::runtime::{Builder, Runtime};
use tower_http::normalize_path::NormalizePath;

use crate::application::{Application, Shape, method_router};

/// As long as the kernel's default limit, so that no server is measured by its backlog.
const BACKLOG: u32 = 4096;

/// Its flags.
#[derive(Debug, Parser)]
struct Options {
    /// Program around the application
    behind: Behind,
    /// Address to listen on
    #[arg(long)]
    listen: SocketAddr,
    /// Rule that decides where the handlers run
    #[arg(long, value_enum, default_value_t = Application::Inline)]
    application: Application,
    /// Shape in which the application is handed over
    #[arg(long, value_enum, default_value_t = Shape::Router)]
    shape: Shape,
    /// Greenroom's loops, or threads of axum's runtime, of which one is without stealing
    #[arg(long, default_value = "2")]
    threads: NonZeroUsize,
    /// Keep the router on Greenroom's loops, unplaced
    #[arg(long)]
    unplaced: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Behind {
    Axum,
    Greenroom,
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    match options.behind {
        Behind::Axum => runtime(options.threads.get())?.block_on(axum(&options)),
        Behind::Greenroom => runtime(1)?.block_on(greenroom(&options)),
    }
}

fn runtime(threads: usize) -> std::io::Result<Runtime> {
    let mut builder = match threads {
        1 => Builder::new_current_thread(),
        _ => Builder::new_multi_thread(),
    };
    if threads > 1 {
        builder.worker_threads(threads);
    }
    builder.enable_all().build()
}

async fn axum(options: &Options) -> anyhow::Result<()> {
    let listener = listen(options.listen)?.tap_io(|stream| {
        // A connection that is gone already needs no option.
        let _ = stream.set_nodelay(true);
    });
    let router = options.application.router();
    match options.shape {
        Shape::MakeService => {
            let app = router.into_make_service_with_connect_info::<SocketAddr>();
            axum::serve(listener, app).await?;
        }
        Shape::MethodRouter => axum::serve(listener, method_router()).await?,
        Shape::NormalizePath => {
            let app = NormalizePath::trim_trailing_slash(router);
            let app = ServiceExt::<Request>::into_make_service(app);
            axum::serve(listener, app).await?;
        }
        Shape::Router => axum::serve(listener, router).await?,
    }
    Ok(())
}

fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

async fn greenroom(options: &Options) -> anyhow::Result<()> {
    let server = Server::builder()
        .listen(Address::from(options.listen))
        .loops(options.threads)
        .access_log(false)
        .bind()?;
    let router = options.application.router();
    // What is left at the end is of no interest here.
    let _drained = match options.shape {
        Shape::Router if options.unplaced => server.serve(OnLoops(router)).await?,
        Shape::MakeService => {
            let app = router.into_make_service_with_connect_info::<SocketAddr>();
            server.serve(app).await?
        }
        Shape::MethodRouter => server.serve(method_router()).await?,
        Shape::NormalizePath => {
            let app = NormalizePath::trim_trailing_slash(router);
            server.serve(app).await?
        }
        Shape::Router => server.serve(router).await?,
    };
    Ok(())
}
