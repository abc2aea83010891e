use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::Address;
use crate::settings::Speaks;

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
    /// A way to a version that drains, for the datagrams of its connections.
    #[cfg(feature = "http3")]
    Forward,
    /// A file that is kept open.
    File,
}

const KINDS: &[(Kind, &str)] = &[
    (Kind::Bound, "bound"),
    (Kind::Passed, "passed"),
    (Kind::PassedProxied, "passed-proxied"),
    #[cfg(feature = "http3")]
    (Kind::Udp, "udp"),
    #[cfg(feature = "http3")]
    (Kind::Forward, "forward"),
    (Kind::File, "file"),
];

/// The description of a descriptor, by which the next version knows what to do with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Label {
    /// The server of the process that it belongs to: `main`, or `admin`.
    pub(crate) part: String,
    pub(crate) kind: Kind,
    pub(crate) named: Named,
}

/// The way in which a socket was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) speaks: Speaks,
    /// The number of those before it that were asked for in the same way: 0 of the first one.
    pub(crate) number: usize,
    /// The address as it was named, port 0 included; of a file, its name.
    pub(crate) asked: String,
}

impl Named {
    /// Returns that of the only socket, or file, of this text.
    pub(crate) fn only(asked: String) -> Self {
        Self {
            speaks: Speaks::Default,
            number: 0,
            asked,
        }
    }

    /// Returns those of the addresses, in their order.
    pub(crate) fn all(addresses: &[(Address, Speaks)]) -> Vec<Self> {
        let named = addresses.iter().enumerate().map(|(index, address)| Self {
            speaks: address.1,
            number: addresses[..index]
                .iter()
                .filter(|each| *each == address)
                .count(),
            asked: address.0.to_string(),
        });
        named.collect()
    }
}

impl Label {
    pub(super) fn line(&self) -> String {
        let kind = KINDS.iter().find(|(kind, _)| *kind == self.kind);
        let kind = kind.map_or("", |(_, text)| text);
        // The path of a Unix socket may be any text, but is the last.
        let asked = self.named.asked.replace('\n', "\\n");
        let (speaks, number) = (self.named.speaks.name(), self.named.number);
        format!("{} {kind} {speaks} {number} {asked}", self.part)
    }

    /// Returns `None` for a line of a version that knows more kinds.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let mut words = line.splitn(5, ' ');
        let (part, kind) = (words.next()?, words.next()?);
        let (kind, _) = KINDS.iter().find(|(_, text)| *text == kind)?;
        let named = Named {
            speaks: Speaks::of_name(words.next()?)?,
            number: words.next()?.parse().ok()?,
            asked: words.next()?.replace("\\n", "\n"),
        };
        Some(Self {
            part: part.to_owned(),
            kind: *kind,
            named,
        })
    }
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

    /// Returns one that goes over to nobody.
    #[cfg(all(test, feature = "http3"))]
    pub(crate) fn of_nobody(socket: impl AsFd) -> Arc<Self> {
        let label = Label {
            part: "main".to_owned(),
            kind: Kind::Forward,
            named: Named::only(String::new()),
        };
        Self::new(label, socket).expect("a descriptor")
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

    /// Returns `true` for what a user named: its fate is worth a line in the log.
    pub(super) fn is_named(&self) -> bool {
        match self.label.kind {
            #[cfg(feature = "http3")]
            Kind::Forward => false,
            _ => true,
        }
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
        for (kind, speaks, number, asked) in [
            (Kind::Bound, Speaks::Default, 0, "127.0.0.1:0"),
            (Kind::Bound, Speaks::Redirecting, 12, "127.0.0.1:0"),
            (Kind::Passed, Speaks::Proxied, 0, "unix:/run/a b\n.sock"),
            (Kind::File, Speaks::Plain, 0, "/run/a.pid"),
        ] {
            let named = Named {
                speaks,
                number,
                asked: asked.to_owned(),
            };
            let label = Label {
                part: "main".to_owned(),
                kind,
                named,
            };
            assert_eq!(Label::parse(&label.line()), Some(label));
        }
        for line in [
            "",
            "main",
            "main bound",
            "main bound default 127.0.0.1:0",
            "main bound unknown 0 127.0.0.1:0",
            "main unknown default 0 127.0.0.1:0",
        ] {
            assert_eq!(Label::parse(line), None);
        }
    }

    #[test]
    fn equal_addresses_are_told_apart_by_what_they_speak_and_by_their_order() {
        let any: Address = "127.0.0.1:0".parse().expect("it is one");
        let named = Named::all(&[
            (any.clone(), Speaks::Default),
            (any.clone(), Speaks::Plain),
            (any, Speaks::Default),
        ]);
        let keys = named.iter().map(|named| (named.speaks, named.number));
        let expected = [
            (Speaks::Default, 0),
            (Speaks::Plain, 0),
            (Speaks::Default, 1),
        ];
        assert!(keys.eq(expected));
    }
}
