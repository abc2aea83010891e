//! Sites of a file: started before they are announced, replaced at SIGHUP and by --watch, shut down
//! after the server has drained.

use std::path::PathBuf;

use anyhow::Context;
use greenroom::{DrainReport, Server, install_metrics};
use greenroom_sites::{Defaults, Faults, File, ServerSetting, Sites};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinHandle;

use super::acme::Names;
use super::actions;
use super::announce;
use super::ending::{Ended, whole};
use super::gateways::interrupted;
use super::watch::Watch;
use crate::args::{Flags, ServeArgs};

pub(super) async fn serve(
    args: &ServeArgs,
    (file, names): (File, Option<Names>),
    server: Server,
    ending: &mut JoinHandle<()>,
) -> anyhow::Result<Ended> {
    // A SIGHUP that comes while applications are loaded must not end the program.
    let hangups = signal(SignalKind::hangup()).context("cannot catch SIGHUP")?;
    if server.admin_address().is_some() {
        // Before the applications, which record from their start.
        let _metrics = install_metrics()?;
    }
    let watch = args.sites.watch.then(|| Watch::start(&file.watched()));
    let watch = watch.transpose()?;
    let limits = &args.limits.0;
    let defaults = Defaults {
        body_bytes_max: limits.body_bytes_max,
        drain_deadline: limits.drain_deadline,
    };
    let interrupted = interrupted()?;
    let sites = tokio::select! {
        started = Sites::start(&file, &defaults) => started?,
        () = interrupted => return Ok(Ended::from(DrainReport::default())),
    };
    announce(args, &server);
    if let Some(actions) = server.admin_actions() {
        let sites = sites.clone();
        actions::add_restart(&actions, move || sites.applications());
    }
    let replacing = Replacing {
        sites: sites.clone(),
        file,
        names,
        defaults,
        watch,
    };
    let replacing = tokio::spawn(replacing.run(hangups));
    let drained = server.serve(sites.app()).await;
    replacing.abort();
    let reports = tokio::select! {
        reports = sites.shutdown() => Some(reports),
        _ = ending => None,
    };
    Ok(Ended {
        drain: drained?,
        in_haste: reports.is_none(),
        gateways: reports.unwrap_or_default(),
    })
}

/// The sites, with the file that is in force.
struct Replacing {
    sites: Sites,
    file: File,
    /// There if the hosts get certificates.
    names: Option<Names>,
    defaults: Defaults,
    watch: Option<Watch>,
}

impl Replacing {
    /// Takes over the file at each SIGHUP, and when it has changed: also before it was watched.
    async fn run(mut self, mut hangups: Signal) {
        if self.watch.is_some() && self.file.has_changed() {
            tracing::info!("the file has changed meanwhile: reloading");
            self.take_over(false).await;
        }
        loop {
            let changed = async {
                match &self.watch {
                    Some(watch) => watch.changed().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                hangup = hangups.recv() => {
                    if hangup.is_none() {
                        return;
                    }
                    tracing::info!(signal = "SIGHUP", "reloading");
                    self.take_over(true).await;
                }
                () = changed => {
                    tracing::info!("a file has changed: reloading");
                    self.take_over(false).await;
                }
            }
        }
    }

    /// Takes over the file, and watches what is in force then.
    async fn take_over(&mut self, with_code: bool) {
        self.reload(with_code).await;
        // One that was refused may name others, and links may lead elsewhere.
        let in_force = self.file.watched();
        self.watch(&in_force);
    }

    /// Watches these files; true if there are directories among theirs that were not watched.
    fn watch(&mut self, files: &[PathBuf]) -> bool {
        let renewed = self.watch.as_mut().map(|watch| watch.renew(files));
        renewed.is_some_and(|renewed| {
            renewed.unwrap_or_else(|error| {
                tracing::warn!("{}; its changes are not seen", whole(&error));
                false
            })
        })
    }

    /// Reads the file, and once more if its files were not watched before: nobody would tell of
    /// what changed meanwhile.
    fn read(&mut self) -> Result<File, Faults> {
        let file = File::read(self.file.path(), &Flags::new())?;
        if self.watch(&file.watched()) {
            return File::read(self.file.path(), &Flags::new());
        }
        Ok(file)
    }

    /// Takes over the file as it is now, as a whole or not at all. If its text is as before, what
    /// it names may have changed: passwords, pages, and, if asked for, the applications' code.
    async fn reload(&mut self, with_code: bool) {
        let file = match self.read() {
            Ok(file) => file,
            Err(faults) => {
                for line in faults.to_string().lines() {
                    tracing::error!("{line}");
                }
                tracing::error!("the file has faults; the sites stay as they were");
                return;
            }
        };
        if let Some(setting) = changed(self.file.server(), file.server()) {
            tracing::error!(
                setting,
                "a setting of the server cannot change while it serves: restart it, or take the \
                 change back; the sites stay as they were"
            );
            return;
        }
        let change = match self.sites.replace(&file, &self.defaults).await {
            Ok(change) => change,
            Err(error) => {
                tracing::error!("{error}");
                tracing::error!("the new sites cannot be served; the sites stay as they were");
                return;
            }
        };
        if let Some(Err(error)) = self.names.as_ref().map(|names| names.take(&file)) {
            tracing::error!(%error, "certificates are obtained for the hosts of before");
        }
        tracing::info!(
            started = change.started,
            kept = change.kept,
            ended = change.ended,
            "the sites of the file are in force; the numbers are of applications"
        );
        let is_same = self.file.text() == file.text();
        self.file = file;
        if is_same && with_code {
            self.sites.reload_applications().await;
        }
    }
}

/// Returns the name of a setting that is not as it was.
fn changed<'a>(before: &'a [ServerSetting], after: &'a [ServerSetting]) -> Option<&'a str> {
    let is_in = |settings: &[ServerSetting], one: &ServerSetting| {
        let mut settings = settings.iter();
        settings.any(|other| {
            (other.table, &other.name, &other.values) == (one.table, &one.name, &one.values)
        })
    };
    let gone = before.iter().find(|setting| !is_in(after, setting));
    let new = after.iter().find(|setting| !is_in(before, setting));
    new.or(gone).map(|setting| &*setting.name)
}
