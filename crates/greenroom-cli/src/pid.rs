//! Process numbers in files.

use std::path::Path;

use rustix::process::Pid;

/// Returns the process that a file of --pid names.
pub(crate) fn read(file: &Path) -> Result<Pid, String> {
    let path = file.display();
    let text = std::fs::read_to_string(file).map_err(|error| format!("{path}: {error}"))?;
    // 0 and below mean groups of processes.
    let pid = text.trim().parse().ok().filter(|pid| *pid > 0);
    pid.and_then(Pid::from_raw)
        .ok_or_else(|| format!("{path}: `{}` is not the number of a process", text.trim()))
}
