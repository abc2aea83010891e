//! PSGI applications: started before they are announced, reloaded by SIGHUP, shut down after the
//! server has drained.

use std::io;

use anyhow::Context;
use futures_util::future::{join_all, select_all};
use greenroom::psgi::{Gateway, Mounts, ShutdownReport, StartError};
use greenroom::{DrainReport, Handle, Server, install_metrics};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinHandle;

use super::actions;
use super::announce;
use super::code::CodeFile;
use super::ending::Ended;
use crate::args::{Gateways, ServeArgs};

pub(super) async fn serve(
    args: &ServeArgs,
    server: Server,
    ending: &mut JoinHandle<()>,
) -> anyhow::Result<Ended> {
    // A SIGHUP that comes while the application is loaded must not end the program.
    let reloads = signal(SignalKind::hangup()).context("cannot catch SIGHUP")?;
    if server.admin_address().is_some() {
        // Before the gateways, which record from their start.
        let _metrics = install_metrics()?;
    }
    let code = args.code().map(|code| CodeFile::write(&code)).transpose()?;
    let code_path = code.as_ref().map(CodeFile::path);
    let mut gateways = Vec::new();
    let drained = match start(args.gateways(code_path.as_deref()), &mut gateways).await {
        Ok(Started::Ready) => {
            announce(args, &server);
            if let Some(actions) = server.admin_actions() {
                let all = gateways.clone();
                actions::add_restart(&actions, move || all.clone());
            }
            let handle = server.handle();
            let reloading = tokio::spawn(reload(reloads, gateways.clone()));
            let watching = tokio::spawn(drain_when_closed(gateways.clone(), handle));
            let drained = server.serve(Mounts::new(gateways.clone())).await;
            reloading.abort();
            watching.abort();
            drained.map_err(Into::into)
        }
        Ok(Started::Interrupted) => Ok(DrainReport::default()),
        Err(error) => Err(error),
    };
    let reports = shut_down(&gateways, ending).await;
    Ok(Ended {
        drain: drained?,
        in_haste: reports.is_none(),
        gateways: reports.unwrap_or_default(),
    })
}

enum Started {
    Ready,
    Interrupted,
}

/// Starts all, one after the other, into `started`, until one cannot be started or a signal ends
/// the program.
async fn start(gateways: Gateways, started: &mut Vec<Gateway>) -> anyhow::Result<Started> {
    let interrupted = interrupted()?;
    tokio::select! {
        ready = start_all(gateways, started) => {
            ready?;
            Ok(Started::Ready)
        }
        () = interrupted => Ok(Started::Interrupted),
    }
}

async fn start_all(gateways: Gateways, started: &mut Vec<Gateway>) -> Result<(), StartError> {
    match gateways {
        Gateways::Attached(builder, directory) => {
            started.push(builder.start_attached(&directory).await?);
        }
        Gateways::Started(builders) => {
            for builder in builders {
                started.push(builder.start().await?);
            }
        }
    }
    Ok(())
}

/// Reloads all at each SIGHUP; the gateways log the outcome. Signals that come meanwhile cause one
/// more reload.
async fn reload(mut hangups: Signal, gateways: Vec<Gateway>) {
    while hangups.recv().await.is_some() {
        tracing::info!(signal = "SIGHUP", "reloading");
        join_all(gateways.iter().map(Gateway::reload)).await;
    }
}

/// Drains the server when plackup, which has loaded the application, has ended.
async fn drain_when_closed(gateways: Vec<Gateway>, server: Handle) {
    let closed = gateways.iter().map(|gateway| Box::pin(gateway.closed()));
    select_all(closed).await;
    tracing::warn!("the process that has the application loaded has ended; draining");
    server.drain();
}

/// Ends the workers and returns their reports; `None` if a second signal, which completes `ending`,
/// came before they had ended.
async fn shut_down(
    gateways: &[Gateway],
    ending: &mut JoinHandle<()>,
) -> Option<Vec<ShutdownReport>> {
    tokio::select! {
        reports = join_all(gateways.iter().map(Gateway::shutdown)) => Some(reports),
        _ = ending => None,
    }
}

/// Completes with the first SIGTERM or SIGINT that comes after this call.
pub(super) fn interrupted() -> anyhow::Result<impl Future<Output = ()>> {
    let catch = || -> io::Result<(Signal, Signal)> {
        Ok((
            signal(SignalKind::terminate())?,
            signal(SignalKind::interrupt())?,
        ))
    };
    let (mut terminate, mut interrupt) = catch().context("cannot catch signals")?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
