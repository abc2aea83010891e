use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;

use super::Upgrades;

/// Returns the name, in the abstract namespace of Unix sockets (unix(7)), of a datagram socket that
/// is there while the process `pid` begins upgrades at SIGUSR2. Nothing is read from it.
#[must_use]
pub fn upgrade_marker(pid: u32) -> String {
    format!("greenroom/upgradable/{pid}")
}

fn mark() -> io::Result<UnixDatagram> {
    let name = upgrade_marker(std::process::id());
    UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(name)?)
}

/// Begins an [upgrade](Upgrades::begin) at each SIGUSR2, which is caught from now on.
///
/// # Errors
///
/// If the system does not let the signal be caught.
///
/// # Panics
///
/// If called outside a tokio runtime.
pub fn upgrade_on_signal(upgrades: Upgrades) -> io::Result<JoinHandle<()>> {
    let mut asked = signal(SignalKind::user_defined2())?;
    upgrades.shared.set_signalled();
    let marker = mark().inspect_err(|error| {
        tracing::warn!(
            %error,
            "`greenroom upgrade` and `greenroom reload` will not find this process; signals work"
        );
    });
    Ok(tokio::spawn(async move {
        let _marker = marker;
        while asked.recv().await.is_some() {
            tracing::info!(signal = "SIGUSR2", "upgrading");
            upgrades.begin();
        }
    }))
}
