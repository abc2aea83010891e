//! The program `social`.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;
use greenroom::{Address, Operators, Serving, count, end_on_signals, raise_descriptor_limit};
use social::config::{Args, Settings};
use social::server::Server;
use tracing_subscriber::EnvFilter;

/// The loops have runtimes of their own; this one runs the drivers of the storage and waits for the end.
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
    raise_descriptor_limit();
    let _operators = operators(&settings)?;
    let server = Server::start(settings).await?;
    let ending = end_on_signals(server.handle()).context("cannot catch signals")?;
    for address in server.addresses() {
        tracing::info!("listening at http://{address}");
    }
    let report = server.serve().await?;
    ending.abort();
    for cut in &report.cut {
        tracing::warn!(%cut, "cut off");
    }
    Ok(())
}

fn operators(settings: &Settings) -> anyhow::Result<Option<Serving>> {
    let Some(address) = settings.status_listen else {
        return Ok(None);
    };
    let operators = Operators::bind(&Address::Tcp(address))?;
    Ok(Some(operators.serve(count()?)))
}
