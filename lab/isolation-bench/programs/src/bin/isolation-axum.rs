//! An application behind `axum::serve`.

use axum::serve::ListenerExt;
use clap::Parser;
use http_bench_apps::{announce, listen};
use isolation_bench_programs::Application;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};

/// Its flags.
#[derive(Debug, Parser)]
struct Options {
    /// Who decides where the handlers run
    #[arg(long, value_enum)]
    application: Application,
    /// Threads of the runtime; 1 is a runtime on one thread, without stealing
    #[arg(long, default_value_t = 2)]
    workers: usize,
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
        axum::serve(listener, options.application.router()).await?;
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
