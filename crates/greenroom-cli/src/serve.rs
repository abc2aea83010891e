//! `greenroom serve`: the demo application behind Greenroom.

use std::io;
use std::process::ExitCode;

use anyhow::Context;
use greenroom::{Address, DrainReport, Error, Server, end_on_signals};
use tracing::field::display;

use crate::args::ServeArgs;
use crate::demo::{self, Demo};
use crate::logging::Logging;
use crate::{descriptors, exit, metrics};

pub(crate) fn run(args: ServeArgs) -> ExitCode {
    let _logging = Logging::start(&args.log);
    // Before the limits are read: the default for connections is a part of what is raised here.
    descriptors::raise_limit();
    match serve(args) {
        Ok(report) => report_drain(&report),
        Err(error) => explain(&error),
    }
}

/// The loops have runtimes of their own; this one only waits for signals and for the end.
#[tokio::main(flavor = "current_thread")]
async fn serve(args: ServeArgs) -> anyhow::Result<DrainReport> {
    args.stage.build()?;
    let demo = demo::router(Demo {
        upstream: args.upstream(),
    });
    let application = demo.merge(metrics::start()?);
    let server = bind(args)?;
    // Before anybody is told that we listen, and may so send a signal.
    let ending = end_on_signals(server.handle()).context("cannot catch signals")?;
    server.local_addresses().iter().for_each(announce);
    let report = server.serve(application).await;
    ending.abort();
    Ok(report?)
}

fn bind(args: ServeArgs) -> Result<Server, Error> {
    let mut builder = Server::builder()
        .limits(args.limits.to_limits())
        .drain_deadline(args.drain_deadline)
        .access_log(!args.log.no_access_log);
    if let Some(loops) = args.loops {
        builder = builder.loops(loops);
    }
    for address in args.listen {
        builder = builder.listen(address);
    }
    builder.bind()
}

fn announce(address: &Address) {
    let url = match address {
        Address::Tcp(socket) => Some(display(format!("http://{socket}"))),
        Address::Unix(_) => None,
    };
    tracing::info!(%address, url, "listening");
}

fn report_drain(report: &DrainReport) -> ExitCode {
    for cut in &report.cut {
        let peer = cut.peer.map(display);
        tracing::warn!(route = cut.route, age = ?cut.age, peer, "cut off");
    }
    match report.cut.len() {
        0 => {
            tracing::info!("ended; nobody was cut off");
            ExitCode::SUCCESS
        }
        count => {
            tracing::warn!(count, "ended before all requests were finished");
            ExitCode::from(exit::FAILED)
        }
    }
}

fn explain(error: &anyhow::Error) -> ExitCode {
    match error.downcast_ref() {
        Some(Error::Bind { source, .. }) => {
            let advice = advice(source.kind());
            exit::with_message(exit::NOT_STARTED, format!("{error}{advice}"))
        }
        Some(Error::NoAddress) => exit::with_message(exit::NOT_STARTED, error),
        _ => exit::with_message(exit::FAILED, format!("{error:#}")),
    }
}

fn advice(kind: io::ErrorKind) -> &'static str {
    match kind {
        io::ErrorKind::AddrInUse => {
            "\n\nAnother program listens there; --listen names another place."
        }
        io::ErrorKind::AddrNotAvailable => "\n\nThis machine has no such address.",
        io::ErrorKind::NotFound => "\n\nThe directory of the socket must exist.",
        io::ErrorKind::PermissionDenied => {
            "\n\nPorts below 1024 need root or CAP_NET_BIND_SERVICE; \
             a socket needs a directory that can be written."
        }
        _ => "",
    }
}
