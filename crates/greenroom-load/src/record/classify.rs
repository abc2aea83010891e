//! The kinds of failure of the system's errors.

use std::io::{self, ErrorKind};

use rustix::io::Errno;

use super::FailureKind;

impl FailureKind {
    /// Classifies an error while connecting.
    pub(crate) fn of_connect(error: &io::Error) -> Self {
        match errno(error) {
            // `connect` to a Unix socket whose backlog is full fails with EAGAIN.
            Some(Errno::CONNREFUSED | Errno::NOENT) => Self::Refused,
            Some(Errno::ADDRNOTAVAIL | Errno::ADDRINUSE) => Self::NoPort,
            Some(Errno::MFILE | Errno::NFILE) => Self::NoDescriptor,
            Some(Errno::TIMEDOUT | Errno::AGAIN) => Self::ConnectTimeout,
            Some(Errno::CONNRESET | Errno::PIPE) => Self::Reset,
            _ if error.kind() == ErrorKind::UnexpectedEof => Self::ClosedEarly,
            _ if is_tls(error) => Self::Tls,
            _ => Self::Unreachable,
        }
    }

    /// Classifies an error while sending or receiving.
    pub(crate) fn of_transfer(error: &io::Error) -> Self {
        match error.kind() {
            ErrorKind::UnexpectedEof => Self::ClosedEarly,
            _ if is_tls(error) => Self::Tls,
            _ => Self::Reset,
        }
    }
}

fn errno(error: &io::Error) -> Option<Errno> {
    Errno::from_io_error(error)
}

fn is_tls(error: &io::Error) -> bool {
    error
        .get_ref()
        .is_some_and(<dyn std::error::Error + Send + Sync>::is::<rustls::Error>)
}
