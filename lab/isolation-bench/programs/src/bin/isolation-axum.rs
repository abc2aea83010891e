//! An application behind `axum::serve`.

use std::net::SocketAddr;

use axum::ServiceExt;
use axum::extract::Request;
use axum::serve::ListenerExt;
use clap::Parser;
use http_bench_apps::{announce, listen};
use isolation_bench_programs::{Application, Shape, method_router};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tower_http::normalize_path::NormalizePath;

/// Its flags.
#[derive(Debug, Parser)]
struct Options {
    /// Rule that decides where the handlers run
    #[arg(long, value_enum)]
    application: Application,
    /// Threads of the runtime; 1 is a runtime on one thread, without stealing
    #[arg(long, default_value_t = 2)]
    workers: usize,
    /// Shape in which the application is handed over
    #[arg(long, value_enum, default_value_t = Shape::Router)]
    shape: Shape,
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    runtime(options.workers)?.block_on(async {
        let listener = TcpListener::from_std(listen(0)?)?;
        announce(listener.local_addr()?)?;
        let listener = listener.tap_io(|stream| {
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
    })
}

fn runtime(workers: usize) -> std::io::Result<Runtime> {
    if workers == 1 {
        return http_bench_apps::runtime();
    }
    Builder::new_multi_thread()
        .worker_threads(workers)
        .enable_all()
        .build()
}
