//! The first signal ends the run with what it has; the second ends the program.

use std::io;

use greenroom_load::run::Stop;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag::{register, register_conditional_shutdown};

use crate::exit;

pub(super) fn stop_on_signals(stop: &Stop) -> io::Result<()> {
    for signal in [SIGINT, SIGTERM] {
        // In this order: at the first signal the flag is not set yet.
        register_conditional_shutdown(signal, exit::INTERRUPTED.into(), stop.flag())?;
        register(signal, stop.flag())?;
    }
    Ok(())
}
