//! SIGTERM and SIGINT: the first drains the server, the second ends it at once.

use std::io;

use greenroom::Handle;
use tokio::signal::unix::{Signal, SignalKind, signal};

pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// From here on the signals do not end the process by themselves.
    pub(crate) fn catch() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    pub(crate) async fn pass_to(mut self, server: Handle) {
        let signal = self.next().await;
        tracing::info!(signal, "draining; a second signal ends at once");
        server.drain();
        let signal = self.next().await;
        tracing::warn!(signal, "ending at once");
        server.abort();
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}
