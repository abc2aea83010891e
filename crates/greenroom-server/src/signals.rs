//! Signals that end a server.

use std::env;
use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinHandle;

use crate::Handle;
use crate::upgrade::STARTER;

/// Ends a server as its operator asks: SIGTERM or SIGINT drains it, a second one aborts it. Both
/// are logged, and the service manager is told (`STOPPING=1`) if `NOTIFY_SOCKET` names one.
/// The signals are caught from now on; to stop catching them is not possible.
///
/// Under Perl's `start_server` (`SERVER_STARTER_PORT`), which sends SIGTERM to all old processes
/// whenever it starts a new one, a further SIGTERM does nothing; SIGINT aborts.
///
/// [`ServerBuilder::shutdown_on_signals`](crate::ServerBuilder::shutdown_on_signals) does so when
/// the server begins to serve.
///
/// # Errors
///
/// If the system does not let signals be caught.
///
/// # Panics
///
/// If called outside a tokio runtime.
pub fn shutdown_on_signals(handle: Handle) -> io::Result<JoinHandle<()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let is_repeated = env::var_os(STARTER).is_some();
    Ok(tokio::spawn(async move {
        let signal = either(&mut terminate, &mut interrupt).await;
        let ends_at_once = if is_repeated {
            "SIGINT"
        } else {
            "a second signal"
        };
        tracing::info!(signal, "draining; {ends_at_once} ends at once");
        handle.stop();
        let signal = if is_repeated {
            interrupted(&mut terminate, &mut interrupt).await
        } else {
            either(&mut terminate, &mut interrupt).await
        };
        tracing::warn!(signal, "ending at once");
        handle.abort();
    }))
}

async fn either(terminate: &mut Signal, interrupt: &mut Signal) -> &'static str {
    tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    }
}

/// Completes with SIGINT.
async fn interrupted(terminate: &mut Signal, interrupt: &mut Signal) -> &'static str {
    loop {
        let signal = either(terminate, interrupt).await;
        if signal == "SIGINT" {
            return signal;
        }
        tracing::info!(signal, "draining already, as start_server asks again");
    }
}
