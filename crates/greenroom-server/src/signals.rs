//! Signals that end a server.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinHandle;

use crate::Handle;
use crate::upgrade::stops;

/// Ends a server as its operator asks: SIGTERM or SIGINT drains it, a second one aborts it. Both
/// are logged, and the service manager is told (`STOPPING=1`) if `NOTIFY_SOCKET` names one.
/// The signals are caught from now on; to stop catching them is not possible.
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
    Ok(tokio::spawn(async move {
        let signal = either(&mut terminate, &mut interrupt).await;
        tracing::info!(signal, "draining; a second signal ends at once");
        handle.drain();
        stops();
        let signal = either(&mut terminate, &mut interrupt).await;
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
