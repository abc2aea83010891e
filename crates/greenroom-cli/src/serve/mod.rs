//! `greenroom serve`: PSGI applications, or the demo application, behind Greenroom.

mod code;
mod descriptors;
mod ending;
mod gateways;
mod identity;
mod inherited;
mod pid_file;
mod prepare;
mod sites;
mod watch;

use std::process::ExitCode;

use anyhow::Context;
use greenroom::{DrainReport, Server, install_metrics, shutdown_on_signals};
use greenroom_sites::File;

use crate::args::ServeArgs;
use crate::demo::{self, Demo};
use crate::logging::{Logging, before_threads};
use ending::Ended;
pub(crate) use identity::Identity;
use prepare::prepare;

/// Serves what the command line names; of a file of sites, the sites.
pub(crate) fn run(args: &ServeArgs, file: Option<File>) -> ExitCode {
    let prepared = match before_threads(&args.log, || prepare(args)) {
        Ok(prepared) => prepared,
        Err(error) => return ending::refuse(&error),
    };
    let _logging = Logging::start(&args.log, prepared.logs);
    let _pid_file = prepared.pid_file;
    match serve(args, file, prepared.server) {
        Ok(ended) => ending::report(&ended),
        Err(error) => ending::explain(&error),
    }
}

/// Serves until the end. The loops have runtimes of their own; this one waits for signals and for
/// the end, and supervises the workers of PSGI applications.
#[tokio::main(flavor = "current_thread")]
async fn serve(args: &ServeArgs, file: Option<File>, server: Server) -> anyhow::Result<Ended> {
    args.stage.build()?;
    // Before the log names the addresses: a reader may send a signal at once.
    let mut ending = shutdown_on_signals(server.handle()).context("cannot catch signals")?;
    let ended = if let Some(file) = file {
        sites::serve(args, file, server, &mut ending).await
    } else if args.is_psgi() {
        gateways::serve(args, server, &mut ending).await
    } else {
        serve_demo(args, server).await.map(Ended::from)
    };
    ending.abort();
    ended
}

async fn serve_demo(args: &ServeArgs, server: Server) -> anyhow::Result<DrainReport> {
    let demo = demo::router(Demo {
        upstream: args.demo.upstream(),
    });
    let application = demo.merge(install_metrics()?);
    announce(&server);
    Ok(server.serve(application).await?)
}

fn announce(server: &Server) {
    for address in server.local_addresses() {
        tracing::info!(%address, url = address.url().map(display), "listening");
    }
}
