//! Certificates that are read again at each SIGHUP.

use anyhow::Context;
use greenroom::Tls;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;

/// Has the certificates read again at each SIGHUP, and logs the outcome. Without TLS a SIGHUP is
/// left to others.
pub(super) fn reload_on_hangup(tls: Option<Tls>) -> anyhow::Result<JoinHandle<()>> {
    let Some(tls) = tls else {
        return Ok(tokio::spawn(async {}));
    };
    let mut hangups = signal(SignalKind::hangup()).context("cannot catch SIGHUP")?;
    Ok(tokio::spawn(async move {
        while hangups.recv().await.is_some() {
            match tls.reload() {
                Ok(()) => tracing::info!(signal = "SIGHUP", "read the certificates again"),
                Err(error) => {
                    tracing::error!(%error, "the certificates stay what they were");
                }
            }
        }
    }))
}
