//! axum with `axum::serve`, which ends on SIGTERM as its `with_graceful_shutdown` does.

use axum::serve::ListenerExt;
use clap::Parser;
use http_bench_apps::{Options, announce, listen, router, runtime};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    runtime()?.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        let listener = TcpListener::from_std(listen(options.port)?)?;
        announce(listener.local_addr()?)?;
        let listener = listener.tap_io(|stream| {
            // A connection that is gone already needs no option.
            let _ = stream.set_nodelay(true);
        });
        axum::serve(listener, router())
            .with_graceful_shutdown(async move {
                terminate.recv().await;
            })
            .await?;
        Ok(())
    })
}
