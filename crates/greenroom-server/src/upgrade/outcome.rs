//! The outcome of an upgrade, for the process that asked for it.

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;

use rustix::net::{
    AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType, sendto, socket_with,
};

/// Bytes of a reason that are sent.
const REASON_BYTES_MAX: usize = 8 * 1_024;

/// The outcome of an upgrade.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpgradeOutcome {
    /// The next version serves.
    Serves {
        /// Its process.
        pid: u32,
    },
    /// The next version did not start, and this one goes on serving.
    Failed {
        /// The reason, in one or more lines.
        reason: String,
    },
    /// None was begun.
    Refused {
        /// The reason, in one line.
        reason: String,
    },
}

impl UpgradeOutcome {
    /// Returns the name, in the abstract namespace of Unix sockets (unix(7)), at which the outcome
    /// of an upgrade of the process `pid` can be received: as one datagram, with the
    /// [text](fmt::Display) of the outcome.
    #[must_use]
    pub fn address_for(pid: u32) -> String {
        format!("greenroom/upgrade/{pid}")
    }

    /// Reads an outcome from its text; `None` for a text that is none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_once(' ')?;
        let reason = rest.to_owned();
        match kind {
            "serves" => Some(Self::Serves {
                pid: rest.parse().ok()?,
            }),
            "failed" => Some(Self::Failed { reason }),
            "refused" => Some(Self::Refused { reason }),
            _ => None,
        }
    }

    /// Sends the outcome to whoever waits for it, if anybody does.
    pub(super) fn publish(&self) {
        if let Err(error) = self.send() {
            tracing::debug!(%error, "nobody waits for the outcome of the upgrade");
        }
    }

    fn send(&self) -> io::Result<()> {
        let mut text = self.to_string();
        text.truncate(text.floor_char_boundary(REASON_BYTES_MAX));
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket: OwnedFd = socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None)?;
        let name = Self::address_for(std::process::id());
        let address = SocketAddrUnix::new_abstract_name(name.as_bytes())?;
        sendto(&socket, text.as_bytes(), SendFlags::NOSIGNAL, &address)?;
        Ok(())
    }
}

impl fmt::Display for UpgradeOutcome {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Serves { pid } => write!(out, "serves {pid}"),
            Self::Failed { reason } => write!(out, "failed {reason}"),
            Self::Refused { reason } => write!(out, "refused {reason}"),
        }
    }
}
