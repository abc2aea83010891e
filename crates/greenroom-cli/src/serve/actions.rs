//! Actions of operators at --status-listen, with the token of --admin-token-file.

use std::io;

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

/// Adds the restart of the workers of each Perl application that `applications` lists.
pub(super) fn add_restart<F>(actions: &AdminActions, applications: F)
where
    F: Fn() -> Vec<Gateway> + Clone + Send + Sync + 'static,
{
    let about = "Starts new workers with the code as it is now; they take over when all are ready";
    let listed = applications.clone();
    let names = move || listed().iter().map(Gateway::name).collect();
    let takes = "Perl application";
    actions.add_for_each("restart-workers", takes, about, names, move |name| {
        let meant = applications().into_iter().find(|each| each.name() == name);
        async move {
            let gateway = meant.ok_or_else(|| format!("{name} has just ended"))?;
            let generation = gateway.reload().await;
            let generation = generation.map_err(|error| format!("{name}: {error}"))?;
            Ok(format!(
                "{name}: the workers of generation {generation} serve"
            ))
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
