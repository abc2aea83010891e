//! `greenroom serve`: PSGI applications, or the demo application, behind Greenroom.

mod ending;
mod gateways;

use std::process::ExitCode;

use anyhow::Context;
use greenroom::{
    Address, DrainReport, Error, Operators, Server, count, end_on_signals, raise_descriptor_limit,
};

use crate::args::ServeArgs;
use crate::demo::{self, Demo};
use crate::logging::Logging;
use ending::Ended;

pub(crate) fn run(args: &ServeArgs) -> ExitCode {
    let _logging = Logging::start(&args.log);
    // Before the limits are read: the default for connections is a part of what is raised here.
    raise_descriptor_limit();
    match serve(args) {
        Ok(ended) => ending::report(&ended),
        Err(error) => ending::explain(&error),
    }
}

/// The loops have runtimes of their own; this one waits for signals and for the end, and looks after
/// the workers of PSGI applications.
#[tokio::main(flavor = "current_thread")]
async fn serve(args: &ServeArgs) -> anyhow::Result<Ended> {
    args.stage.build()?;
    // Whatever is wrong with an address is said before workers are started.
    let server = bind(args)?;
    let operators = args
        .status_listen
        .as_ref()
        .map(Operators::bind)
        .transpose()?;
    // Before anybody is told that we listen, and may so send a signal.
    let mut ending = end_on_signals(server.handle()).context("cannot catch signals")?;
    let ended = if args.is_psgi() {
        gateways::serve(args, server, operators, &mut ending).await
    } else {
        serve_demo(args, server, operators).await.map(Ended::from)
    };
    ending.abort();
    ended
}

async fn serve_demo(
    args: &ServeArgs,
    server: Server,
    operators: Option<Operators>,
) -> anyhow::Result<DrainReport> {
    let demo = demo::router(Demo {
        upstream: args.demo.upstream(),
    });
    let metrics = count()?;
    let application = demo.merge(metrics.clone());
    announce(&server);
    let _operators = operators.map(|operators| operators.serve(metrics));
    Ok(server.serve(application).await?)
}

fn bind(args: &ServeArgs) -> Result<Server, Error> {
    let mut builder = Server::builder()
        .limits(args.limits.to_limits())
        .drain_deadline(args.drain_deadline)
        .drain_grace(args.drain_grace)
        .trusted_proxies(args.trusted_proxies())
        .access_log(!args.log.no_access_log);
    if let Some(loops) = args.loops {
        builder = builder.loops(loops);
    }
    for address in args.listen.addresses() {
        builder = if args.listen.proxy_protocol {
            builder.listen_proxied(address)
        } else {
            builder.listen(address)
        };
    }
    builder.bind()
}

fn announce(server: &Server) {
    for address in server.local_addresses() {
        tracing::info!(%address, url = url(address).map(display), "listening");
    }
}

fn url(address: &Address) -> Option<String> {
    match address {
        Address::Tcp(socket) => Some(format!("http://{socket}")),
        Address::Unix(_) => None,
    }
}
