//! Certificates that are read again at each SIGHUP.

use anyhow::Context;
use greenroom::Tls;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;

/// Has the certificates read again at each SIGHUP, and logs the outcome. The signal ends the
/// program in no case: who sends it may not know what is served. Without TLS it is left to others,
/// unless this `is_all` that there is.
pub(super) fn reload_on_hangup(tls: Option<Tls>, is_all: bool) -> anyhow::Result<JoinHandle<()>> {
    let mut hangups = signal(SignalKind::hangup()).context("cannot catch SIGHUP")?;
    Ok(tokio::spawn(async move {
        while hangups.recv().await.is_some() {
            match tls.as_ref().map(Tls::reload) {
                Some(Ok(())) => tracing::info!(signal = "SIGHUP", "read the certificates again"),
                Some(Err(error)) => {
                    tracing::error!(%error, "the certificates stay what they were");
                }
                None if is_all => tracing::info!(signal = "SIGHUP", "there is nothing to reload"),
                None => {}
            }
        }
    }))
}
