//! Actions of operators at --status-listen, with the token of --admin-token-file.

use std::io;

use futures_util::future::join_all;
use greenroom::AdminActions;
use greenroom::psgi::Gateway;
use rustix::process::{Signal, getpid, kill_process};
use tracing_subscriber::filter::LevelFilter;

use crate::args::{ServeArgs, log_filter};
use crate::logging::Levels;

const LEVELS: &str = "error, warn, info, debug, trace, off, and TARGET=LEVEL,…";

/// Adds the actions that need no application.
pub(super) fn add(actions: &AdminActions, args: &ServeArgs, levels: &Levels) {
    let levels = levels.clone();
    let about =
        "Sets the level of the log: error, warn, info, debug, trace, off, or TARGET=LEVEL,…";
    actions.add_with("log-level", "Level", about, move |text| {
        let outcome = set_level(&levels, &text);
        async { outcome }
    });
    actions.label("log-level", "Set the log's level");
    if args.log.access_log.is_some() || args.log.error_log.is_some() {
        let about = "Reopens the log files, after they were moved away, as SIGUSR1 does";
        actions.add("reopen-logs", about, || async {
            signal(Signal::USR1)?;
            Ok("each file is reopened by its next line".to_owned())
        });
        actions.label("reopen-logs", "Reopen the log files");
    }
    // Without one of these nobody catches the signal, and it would end the process.
    if args.is_psgi() || args.sites_file().is_some() || args.tls.is_on() {
        let about = "Reloads the file of sites, the Perl application and the certificates, as \
                     SIGHUP does";
        actions.add("reload", about, || async {
            signal(Signal::HUP)?;
            Ok("it reloads; the log tells the outcome".to_owned())
        });
    }
}

/// Adds the restart of the workers of Perl applications.
pub(super) fn add_restart(actions: &AdminActions, gateways: &[Gateway]) {
    let gateways = gateways.to_vec();
    let about = "Starts new workers with the code as it is now; they take over when all are ready";
    actions.add("restart-workers", about, move || {
        let gateways = gateways.clone();
        async move {
            let reloads = join_all(gateways.iter().map(Gateway::reload)).await;
            let generations: Result<Vec<_>, _> = reloads.into_iter().collect();
            let generations = generations.map_err(|error| error.to_string())?;
            Ok(format!("the workers of generation {generations:?} serve"))
        }
    });
    actions.label("restart-workers", "Restart the Perl workers");
}

fn set_level(levels: &Levels, text: &str) -> Result<String, String> {
    // A single word that is no level would be taken for a target, and silence all others.
    // Nothing at all would be taken for `error`.
    let is_level = |word: &str| {
        let word = word.trim();
        word.contains('=') || !word.is_empty() && word.parse::<LevelFilter>().is_ok()
    };
    if !text.split(',').all(is_level) {
        return Err(format!("`{text}` is no level; allowed are {LEVELS}"));
    }
    let level = log_filter(text)?;
    levels.set(&level).map_err(|error| error.to_string())?;
    Ok(format!("the level of the log is {level}"))
}

fn signal(signal: Signal) -> Result<(), String> {
    let sent = kill_process(getpid(), signal);
    sent.map_err(|errno| io::Error::from(errno).to_string())
}
