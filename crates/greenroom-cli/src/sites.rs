//! The commands of files of sites.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

use greenroom_sites::{Entry, File};
use rustix::process::{Pid, Signal, kill_process};

use crate::args::{CheckArgs, Command, ConfigArgs, Flags, ReloadArgs, WithFile};
use crate::{exit, pid, serve, upgrade};

/// Serves the sites of a file, by the words of the command line.
pub(crate) fn serve(path: &Path) -> ExitCode {
    let file = match File::read(path, &Flags::new()) {
        Ok(file) => file,
        Err(faults) => {
            serve::tell_version_before(&faults);
            return exit::with_message(exit::NOT_STARTED, faults);
        }
    };
    let words = std::env::args_os().collect();
    let read = WithFile::read(words, Some(&file)).unwrap_or_else(|error| {
        serve::tell_version_before(&error);
        error.exit()
    });
    match read.args.command {
        Command::Serve(args) => serve::run(&args, Some(file)),
        _ => ExitCode::from(exit::FAILED),
    }
}

pub(crate) fn check(args: &CheckArgs) -> ExitCode {
    match File::read(&args.file, &Flags::new()) {
        Ok(_) => ExitCode::SUCCESS,
        Err(faults) => exit::with_message(exit::NOT_STARTED, faults),
    }
}

pub(crate) fn config(args: ConfigArgs) -> ExitCode {
    let mut words: Vec<OsString> = vec!["greenroom".into(), "serve".into()];
    let mut file = None;
    if let Some(path) = &args.file {
        words.push(path.into());
        match File::read(path, &Flags::new()) {
            Ok(read) => file = Some(read),
            Err(faults) => return exit::with_message(exit::NOT_STARTED, faults),
        }
    }
    words.extend(args.flags);
    let read = WithFile::read(words, file.as_ref()).unwrap_or_else(|error| error.exit());
    let mut entries = read.entries(file.as_ref());
    entries.extend(file.iter().flat_map(|file| file.entries().iter().cloned()));
    print(&list(&entries))
}

/// Returns a line for each value, with its origin behind it.
fn list(entries: &[Entry]) -> String {
    let lines = entries.iter().map(|entry| match &*entry.value {
        "" => format!("# {} is not set", entry.key),
        value => format!("{} = {value}", entry.key),
    });
    let lines: Vec<String> = lines.collect();
    let width = lines.iter().map(|line| line.chars().count().min(60)).max();
    let width = width.unwrap_or_default();
    let mut text = String::new();
    for (line, entry) in lines.iter().zip(entries) {
        // Writing to a string cannot fail.
        let _written = writeln!(text, "{line:width$}  # {}", entry.origin);
    }
    text
}

pub(crate) fn schema() -> ExitCode {
    let schema = greenroom_sites::schema(&Flags::new());
    print(&format!("{schema:#}\n"))
}

fn print(text: &str) -> ExitCode {
    match io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => exit::with_message(exit::FAILED, error),
    }
}

pub(crate) fn reload(args: &ReloadArgs) -> ExitCode {
    match ask_to_reload(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => exit::with_message(exit::NOT_STARTED, message),
    }
}

fn ask_to_reload(args: &ReloadArgs) -> Result<(), String> {
    let (pid, path) = (pid::read(&args.pid)?, args.pid.display());
    upgrade::check(pid, "reloads nothing at SIGHUP")
        .map_err(|message| format!("{path}: {message}"))?;
    if !survives_hangup(pid) {
        return Err(format!(
            "{path}: process {pid} has no use for SIGHUP, which would end it"
        ));
    }
    kill_process(pid, Signal::HUP).map_err(|errno| format!("{path}: process {pid}: {errno}"))
}

/// Returns `false` for a process that neither catches SIGHUP nor ignores it.
fn survives_hangup(pid: Pid) -> bool {
    // Where others' processes are hidden nothing is known.
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let sets = status.lines().filter_map(|line| {
        let (name, set) = line.split_once(':')?;
        let is_meant = matches!(name, "SigCgt" | "SigIgn");
        is_meant.then(|| u64::from_str_radix(set.trim(), 16).ok())?
    });
    let sets: Vec<u64> = sets.collect();
    let bit = 1 << (Signal::HUP.as_raw() - 1);
    sets.is_empty() || sets.iter().any(|set| set & bit != 0)
}
