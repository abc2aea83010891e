//! axum with `axum::serve`; also the peer that waits in the echo cases.

use axum::serve::ListenerExt;
use clap::Parser;
use http_bench_apps::{Options, announce, listen, router, runtime};
use tokio::net::TcpListener;

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    runtime()?.block_on(async {
        let listener = TcpListener::from_std(listen(options.port)?)?;
        announce(listener.local_addr()?)?;
        let listener = listener.tap_io(|stream| {
            // A connection that is gone already needs no option.
            let _ = stream.set_nodelay(true);
        });
        axum::serve(listener, router()).await?;
        Ok(())
    })
}
