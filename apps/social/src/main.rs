//! The program `social`.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;
use greenroom::shutdown_on_signals;
use social::config::Args;
use social::server::Server;
use tracing_subscriber::EnvFilter;

/// Runs the drivers of the storage and waits for the end; the server's loops have runtimes of their
/// own.
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let args = Args::parse();
    start_log();
    match run(&args).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "social: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn start_log() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(io::stderr().is_terminal())
        .with_writer(io::stderr)
        .init();
}

async fn run(args: &Args) -> anyhow::Result<()> {
    let settings = args.settings()?;
    let server = Server::start(settings).await?;
    let ending = shutdown_on_signals(server.handle()).context("cannot catch signals")?;
    for address in server.addresses() {
        tracing::info!("listening at http://{address}");
    }
    let report = server.serve().await?;
    ending.abort();
    for cut in &report.aborted {
        tracing::warn!(%cut, "aborted by the deadline of the drain");
    }
    Ok(())
}
