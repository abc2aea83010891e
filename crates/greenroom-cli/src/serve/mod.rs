//! `greenroom serve`: PSGI applications, or the demo application, behind Greenroom.

mod acme;
mod actions;
mod certificates;
mod code;
mod confine;
mod descriptors;
mod ending;
mod gateways;
mod identity;
mod inherited;
mod pid_file;
mod prepare;
mod sites;
mod socket_files;
mod storage;
mod watch;

use std::fmt::Display;
use std::process::ExitCode;

use anyhow::Context;
use greenroom::{
    DrainReport, Server, Upgrades, install_metrics, shutdown_on_signals, upgrade_on_signal,
};
use greenroom_sites::File;

use crate::args::ServeArgs;
use crate::demo::{self, Demo};
use crate::logging::{Levels, Logging, before_threads};
#[cfg(feature = "otlp")]
use crate::otlp::Traces;
use ending::Ended;
pub(crate) use identity::Identity;
use prepare::{Secured, prepare};

/// Serves what the command line names; of a file of sites, the sites.
pub(crate) fn run(args: &ServeArgs, file: Option<File>) -> ExitCode {
    let prepared = before_threads(&args.log, || {
        prepare(args, file.as_ref()).inspect_err(|error| {
            tell_version_before(&ending::whole(error));
        })
    });
    let prepared = match prepared {
        Ok(prepared) => prepared,
        Err(error) => return ending::refuse(&error),
    };
    let logging = Logging::start(&args.log, prepared.logs);
    let _pid_file = prepared.pid_file;
    #[cfg(feature = "otlp")]
    let sending = match prepared.traces.map(Traces::start).transpose() {
        Ok(sending) => sending,
        Err(error) => {
            tell_version_before(&format!("{error:#}"));
            return ending::explain(&error);
        }
    };
    let served = serve(
        args,
        file,
        prepared.server,
        prepared.secured,
        &logging.levels,
    );
    #[cfg(feature = "otlp")]
    if let Some(sending) = sending {
        sending.finish();
    }
    match served {
        Ok(ended) => ending::report(&ended),
        Err(error) => {
            tell_version_before(&ending::whole(&error));
            ending::explain(&error)
        }
    }
}

/// Tells the version before, if there is one, why this one does not take over.
pub(crate) fn tell_version_before(reason: &dyn Display) {
    // One that cannot be found cannot be told, and will see that this process ends.
    if let Ok(upgrades) = Upgrades::of_process() {
        upgrades.fail(reason.to_string().trim_end());
    }
}

/// Serves until the end. The loops have runtimes of their own; this one waits for signals and for
/// the end, and supervises the workers of PSGI applications.
#[tokio::main(flavor = "current_thread")]
async fn serve(
    args: &ServeArgs,
    file: Option<File>,
    mut server: Server,
    secured: Secured,
    levels: &Levels,
) -> anyhow::Result<Ended> {
    args.stage.build()?;
    // Before the log names the addresses: a reader may send a signal at once.
    let mut ending = shutdown_on_signals(server.handle()).context("cannot catch signals")?;
    // Before `greenroom upgrade` and `greenroom reload` find this process.
    let reloading = certificates::reload_on_hangup(secured.tls)?;
    let upgrades = Upgrades::of_process()?;
    let on_duty = upgrades.on_duty();
    let upgrading = upgrade_on_signal(upgrades).context("cannot catch SIGUSR2")?;
    if let Some(actions) = server.admin_actions() {
        actions::add(&actions, args, levels);
    }
    // Before the applications are loaded, which may take a while.
    server.serve_admin();
    let acme = secured.acme;
    let obtaining = acme.map(|acme| tokio::spawn(acme::obtain(acme, on_duty)));
    let ended = if let Some(file) = file {
        sites::serve(args, (file, secured.names), server, &mut ending).await
    } else if args.is_psgi() {
        gateways::serve(args, server, &mut ending).await
    } else {
        serve_demo(args, server).await.map(Ended::from)
    };
    ending.abort();
    upgrading.abort();
    reloading.abort();
    if let Some(obtaining) = obtaining {
        obtaining.abort();
    }
    ended
}

async fn serve_demo(args: &ServeArgs, server: Server) -> anyhow::Result<DrainReport> {
    let demo = demo::router(Demo {
        upstream: args.demo.upstream(),
    });
    let application = demo.merge(install_metrics()?);
    announce(args, &server);
    Ok(server.serve(application).await?)
}

fn announce(args: &ServeArgs, server: &Server) {
    let addresses = server.local_addresses();
    // Those without TLS were named last.
    let tls_count = addresses.len() - args.without_tls();
    for (index, address) in addresses.iter().enumerate() {
        let is_tls = args.tls.is_on() && index < tls_count;
        let url = address.url().map(|url| match url.strip_prefix("http:") {
            Some(rest) if is_tls => format!("https:{rest}"),
            _ => url,
        });
        tracing::info!(%address, url = url.map(display), "listening");
    }
}
