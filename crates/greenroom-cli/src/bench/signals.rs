//! Signals of a run: the first ends it with the results so far; the second ends the program, unless
//! it has servers to end.

use std::{fs, io};

use greenroom_load::run::Stop;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::flag::{register, register_conditional_shutdown};

use crate::exit;

/// Stops gently on signals, for a program with servers of its own: a second signal must not end it
/// before it has ended them. SIGINT and SIGTERM count even if whoever started the program has them
/// ignored, as for any run: a script's job in the background would not hear `kill -INT`.
pub(super) fn stop_gently_on_signals(stop: &Stop) -> io::Result<()> {
    let others = [SIGHUP, SIGQUIT].into_iter();
    let others = others.filter(|signal| !is_ignored(*signal));
    let mut all = [SIGINT, SIGTERM].into_iter().chain(others);
    all.try_for_each(|signal| register(signal, stop.flag()).map(drop))
}

/// Returns `true` if whoever started the program has it ignored, as `nohup` does with SIGHUP.
fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut lines = status.lines();
    let ignored = lines.find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

pub(super) fn stop_on_signals(stop: &Stop) -> io::Result<()> {
    for signal in [SIGINT, SIGTERM] {
        // In this order: at the first signal the flag is not set yet.
        register_conditional_shutdown(signal, exit::INTERRUPTED.into(), stop.flag())?;
        register(signal, stop.flag())?;
    }
    Ok(())
}
