use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::Address;

/// The origin of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Bound by the server to an address that was named.
    Bound,
    /// Passed on by whoever started the first version, such as systemd.
    Passed,
    /// The same, where proxies announce their clients.
    PassedProxied,
    /// Bound for UDP, beside one that was bound.
    #[cfg(feature = "http3")]
    Udp,
    /// A file that is kept open.
    File,
}

const KINDS: &[(Kind, &str)] = &[
    (Kind::Bound, "bound"),
    (Kind::Passed, "passed"),
    (Kind::PassedProxied, "passed-proxied"),
    #[cfg(feature = "http3")]
    (Kind::Udp, "udp"),
    (Kind::File, "file"),
];

/// The description of a descriptor, by which the next version knows what to do with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Label {
    /// The server of the process that it belongs to: `main`, or `admin`.
    pub(crate) part: String,
    pub(crate) kind: Kind,
    /// The address as it was named, port 0 included; of a file, its name.
    pub(crate) asked: String,
}

impl Label {
    pub(super) fn line(&self) -> String {
        let kind = KINDS.iter().find(|(kind, _)| *kind == self.kind);
        let kind = kind.map_or("", |(_, text)| text);
        // The path of a Unix socket may be any text, but is the last.
        let asked = self.asked.replace('\n', "\\n");
        format!("{} {kind} {asked}", self.part)
    }

    /// Returns `None` for a line of a version that knows more kinds.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let mut words = line.splitn(3, ' ');
        let (part, kind, asked) = (words.next()?, words.next()?, words.next()?);
        let (kind, _) = KINDS.iter().find(|(_, text)| *text == kind)?;
        Some(Self {
            part: part.to_owned(),
            kind: *kind,
            asked: asked.replace("\\n", "\n"),
        })
    }
}

/// Returns the text by which an address is found again.
pub(super) fn asked(address: &Address) -> String {
    address.to_string()
}

/// A socket of this process that goes over to the next version.
#[derive(Debug)]
pub(crate) struct Handed {
    pub(super) label: Label,
    /// A second descriptor of the socket, until its listener is gone.
    socket: Mutex<Option<OwnedFd>>,
    is_taken: AtomicBool,
}

impl Handed {
    pub(super) fn new(label: Label, socket: impl AsFd) -> io::Result<Arc<Self>> {
        Ok(Arc::new(Self {
            label,
            socket: Mutex::new(Some(socket.as_fd().try_clone_to_owned()?)),
            is_taken: AtomicBool::new(false),
        }))
    }

    /// Returns one more descriptor; `None` if the socket is closed.
    pub(super) fn duplicate(&self) -> Option<io::Result<OwnedFd>> {
        self.socket.lock().as_ref().map(OwnedFd::try_clone)
    }

    pub(super) fn is_open(&self) -> bool {
        self.socket.lock().is_some()
    }

    pub(super) fn is_listener(&self) -> bool {
        matches!(
            self.label.kind,
            Kind::Bound | Kind::Passed | Kind::PassedProxied
        )
    }

    pub(super) fn set_taken(&self) {
        self.is_taken.store(true, Ordering::Relaxed);
    }

    /// Returns `true` if the next version serves the socket: what waits there is not lost if it is
    /// closed here, and its file is not ours any more.
    pub(crate) fn is_taken(&self) -> bool {
        self.is_taken.load(Ordering::Relaxed)
    }

    /// Closes the second descriptor, or the socket would go on listening.
    pub(crate) fn close(&self) {
        self.socket.lock().take();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_can_be_read_again() {
        for (kind, asked) in [
            (Kind::Bound, "127.0.0.1:0"),
            (Kind::Passed, "unix:/run/a b\n.sock"),
            (Kind::File, "/run/a.pid"),
        ] {
            let label = Label {
                part: "main".to_owned(),
                kind,
                asked: asked.to_owned(),
            };
            assert_eq!(Label::parse(&label.line()), Some(label));
        }
        for line in ["", "main", "main bound", "main unknown 127.0.0.1:0"] {
            assert_eq!(Label::parse(line), None);
        }
    }
}
