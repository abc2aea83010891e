use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::predecessor::VARIABLE;

/// Variables that are for this process only: sockets that it was started with, which go over by
/// other ways, and the process that a service manager watches.
const NOT_PASSED_ON: &[&str] = &[
    "LISTEN_FDNAMES",
    "LISTEN_FDS",
    "LISTEN_PID",
    "LISTEN_PIDFDID",
    "WATCHDOG_PID",
];

/// The program that this process runs, as it was started: so found again, and with the same
/// arguments, what is at its path at the time is the next version.
#[derive(Debug)]
pub(super) struct Program {
    /// A name without a slash is looked for in `PATH` each time.
    path: PathBuf,
    arguments: Vec<OsString>,
}

impl Program {
    /// Finds out how this process was started. To be called early: the path of its program is one
    /// of the current directory, and cannot be told once the file has been replaced.
    pub(super) fn of_process() -> io::Result<Self> {
        let mut arguments = env::args_os();
        let name = arguments.next().unwrap_or_default();
        let ours = env::current_exe()?;
        Ok(Self {
            path: path_of(&name, &ours),
            arguments: arguments.collect(),
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Starts it, with `channel` as its standard input, which `identity` names, and without the
    /// variables `hidden`.
    pub(super) fn start(
        &self,
        channel: OwnedFd,
        identity: &str,
        hidden: &[&str],
    ) -> io::Result<Child> {
        let mut command = Command::new(&self.path);
        if let Some(name) = env::args_os().next() {
            command.arg0(name);
        }
        command.args(&self.arguments).env(VARIABLE, identity);
        for name in NOT_PASSED_ON.iter().chain(hidden) {
            command.env_remove(name);
        }
        command.stdin(Stdio::from(channel)).spawn()
    }
}

/// Returns the path by which a program was called, which may lead through links that an update
/// changes, if it is that of the program that runs; else the program itself. The system does not
/// say by which name a program was called, and whoever calls it can say what they like.
fn path_of(name: &OsString, ours: &Path) -> PathBuf {
    let is_ours = |path: &Path| {
        let found = fs::canonicalize(path);
        found.is_ok_and(|found| fs::canonicalize(ours).is_ok_and(|ours| ours == found))
    };
    let named = Path::new(name);
    if named.components().count() == 1 && !name.to_string_lossy().contains('/') {
        let directories = env::var_os("PATH").unwrap_or_default();
        let mut found = env::split_paths(&directories).map(|directory| directory.join(named));
        let first = found.find(|path| path.is_file());
        return match first {
            Some(path) if is_ours(&path) => named.to_owned(),
            _ => ours.to_owned(),
        };
    }
    match std::path::absolute(named) {
        Ok(path) if is_ours(&path) => path,
        _ => ours.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_link_that_leads_to_the_program_is_kept_and_others_are_not() {
        let ours = env::current_exe().expect("there is /proc");
        let directory = tempfile::tempdir().expect("a directory");
        let link = directory.path().join("current");
        symlink(&ours, &link).expect("a link");
        assert_eq!(path_of(&link.clone().into_os_string(), &ours), link);
        for name in ["", "-sh", "/bin/sh", "/nowhere/at-all", "sh"] {
            assert_eq!(path_of(&OsString::from(name), &ours), ours, "{name}");
        }
    }
}
