//! Signals of a run: the first ends it with the results so far; the second ends the program, unless
//! it has servers to end.

use std::io;

use greenroom_load::run::Stop;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag::{register, register_conditional_shutdown};

use crate::exit;

/// Stops gently on signals, for a program with servers of its own: a second signal must not end it
/// before it has ended them.
pub(super) fn stop_gently_on_signals(stop: &Stop) -> io::Result<()> {
    [SIGINT, SIGTERM]
        .into_iter()
        .try_for_each(|signal| register(signal, stop.flag()).map(drop))
}

pub(super) fn stop_on_signals(stop: &Stop) -> io::Result<()> {
    for signal in [SIGINT, SIGTERM] {
        // In this order: at the first signal the flag is not set yet.
        register_conditional_shutdown(signal, exit::INTERRUPTED.into(), stop.flag())?;
        register(signal, stop.flag())?;
    }
    Ok(())
}
