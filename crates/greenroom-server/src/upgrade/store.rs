//! The service manager's store of descriptors (`sd_notify(3)`, `FDSTORE=1`), where listening
//! sockets outlive a process that crashes, is killed, or is restarted.

use std::env;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixDatagram};
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::net::SendFlags;

use super::channel::{self, DESCRIPTORS_MAX};
use super::handed::{Handed, Kind, Label};
use super::manager::surrounds;
use crate::InheritedSocket;

/// The beginning of the names of our sockets in the store. Those of a `.socket` unit are called
/// after it, unless it says otherwise, and the names of units have no slash.
const PREFIX: &str = "greenroom/";

/// The variable with the number of descriptors that the store takes, of systemd 254 and later.
pub(super) const VARIABLE: &str = "FDSTORE";

/// The most sockets that are stored. A process is given 1024 at most, also by others.
const STORED_MAX: usize = 512;

/// The listening sockets of this process in the store.
#[derive(Debug, Default)]
pub(super) struct Store(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The most sockets that are put there; 0 if the store is not used.
    sockets_max: usize,
    /// The sockets that were there when the process started, and that nobody has taken yet.
    kept: Vec<(String, OwnedFd)>,
    /// It is the next version's now.
    is_left: bool,
}

/// Returns `true` for the name of a socket that a version of this server had put into the store.
pub(super) fn is_ours(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// Returns the name of a label's sockets, which has no colon (`FDNAME=` takes none); `None` if they
/// are not for the store.
fn name(label: &Label) -> Option<String> {
    let line = label.line();
    let (_, asked) = line.rsplit_once(' ')?;
    let is_tcp = asked.parse::<SocketAddr>().is_ok();
    (label.kind == Kind::Bound && is_tcp)
        .then(|| format!("{PREFIX}{}", line.replace(' ', "/").replace(':', "+")))
}

impl Store {
    /// Takes what was in the store, and uses it from now on if the manager offers one to this
    /// process or, `is_next`, to the version before.
    pub(super) fn begin(&self, kept: Vec<(String, OwnedFd)>, is_next: bool) -> io::Result<()> {
        let offered = offered(env::var(VARIABLE).ok().as_deref())?;
        let mut state = self.0.lock();
        if is_next || surrounds() {
            state.sockets_max = offered.min(STORED_MAX);
        }
        state.kept = kept;
        Ok(())
    }

    pub(super) fn is_used(&self) -> bool {
        self.0.lock().sockets_max > 0
    }

    /// Takes the sockets that were there for a label.
    pub(super) fn take(&self, label: &Label) -> Vec<OwnedFd> {
        let wanted = name(label);
        let is_wanted = |(name, socket): &mut (String, OwnedFd)| {
            wanted.as_ref() == Some(name) && listens(name, socket)
        };
        let mut state = self.0.lock();
        let taken: Vec<_> = state.kept.extract_if(.., is_wanted).collect();
        if let Some(name) = wanted.filter(|_| !taken.is_empty()) {
            tracing::info!(
                name,
                sockets = taken.len(),
                "taken from the manager's store"
            );
        }
        taken.into_iter().map(|(_, socket)| socket).collect()
    }

    /// Gives up sockets that nobody has taken and that have this port; `true` if there are any. The
    /// manager closes its own a moment later.
    pub(super) fn free_port(&self, port: u16) -> bool {
        let has_port = |(_, socket): &mut (String, OwnedFd)| {
            let address = rustix::net::getsockname(&*socket).ok();
            let address = address.and_then(|address| SocketAddr::try_from(address).ok());
            address.is_some_and(|address| address.port() == port)
        };
        let freed: Vec<_> = self.0.lock().kept.extract_if(.., has_port).collect();
        give_up(freed.iter().map(|(name, _)| name.as_str()));
        !freed.is_empty()
    }

    /// Puts the sockets there, once this process serves, and gives up what was there and is not
    /// named any more. The manager knows those that it has already.
    pub(super) fn put(&self, handed: &[Arc<Handed>]) {
        let mut state = self.0.lock();
        if state.is_left {
            return;
        }
        let kept = std::mem::take(&mut state.kept);
        give_up(kept.iter().map(|(name, _)| name.as_str()));
        if state.sockets_max == 0 {
            return;
        }
        let put = put_all(handed, state.sockets_max);
        match put {
            Ok(sockets) => tracing::debug!(sockets, "in the manager's store"),
            Err(error) => tracing::warn!(
                %error,
                "the manager's store does not get all sockets: what waits there is lost if this \
                 process crashes"
            ),
        }
    }

    /// Leaves the store to the next version, without the sockets that it has not taken.
    pub(super) fn leave(&self, handed: &[Arc<Handed>]) {
        let mut state = self.0.lock();
        state.is_left = true;
        if state.sockets_max == 0 {
            return;
        }
        let names = |is_taken: bool| {
            let those = handed
                .iter()
                .filter(move |each| each.is_taken() == is_taken);
            those.filter_map(|each| name(&each.label))
        };
        let mut left: Vec<String> = names(false).collect();
        left.dedup();
        left.retain(|left| names(true).all(|taken| taken != *left));
        give_up(left.iter().map(String::as_str));
    }
}

/// Returns `true` for a socket that can be served.
fn listens(name: &str, socket: &OwnedFd) -> bool {
    let usable = socket.try_clone().and_then(InheritedSocket::try_from);
    if let Err(error) = &usable {
        tracing::warn!(name, %error, "the manager's store had something else");
    }
    usable.is_ok()
}

/// Returns the number of descriptors that the manager takes.
fn offered(variable: Option<&str>) -> io::Result<usize> {
    let Some(text) = variable else {
        return Ok(0);
    };
    let expected = || {
        io::Error::other(format!(
            "{VARIABLE}={text}: expected is the number of descriptors that the manager stores"
        ))
    };
    text.parse().map_err(|_| expected())
}

/// Has the manager close the sockets of these names. Connections that wait there are reset, unless
/// a process has the sockets, too.
fn give_up<'a>(names: impl Iterator<Item = &'a str>) {
    let mut last = None;
    for name in names.filter(|name| last.replace(*name) != Some(name)) {
        tracing::info!(
            name,
            "removed from the manager's store: it is not named any more"
        );
        let text = format!("FDSTOREREMOVE=1\nFDNAME={name}\n");
        if let Err(error) = send(&text, &[]) {
            tracing::warn!(name, %error, "the manager cannot be told");
        }
    }
}

/// Puts the sockets there, so many at most; returns the number of those that were sent.
fn put_all(handed: &[Arc<Handed>], sockets_max: usize) -> io::Result<usize> {
    let mut sockets: Vec<(String, OwnedFd)> = Vec::new();
    for (name, each) in handed
        .iter()
        .filter_map(|each| Some((name(&each.label)?, each)))
    {
        if let Some(socket) = each.duplicate() {
            sockets.push((name, socket?));
        }
    }
    let count = sockets.len();
    sockets.truncate(sockets_max);
    for batch in sockets.chunk_by(|one, next| one.0 == next.0) {
        let text = format!("FDSTORE=1\nFDNAME={}\n", batch[0].0);
        for part in batch.chunks(DESCRIPTORS_MAX) {
            let descriptors: Vec<_> = part.iter().map(|(_, socket)| socket.as_fd()).collect();
            send(&text, &descriptors)?;
        }
    }
    if count > sockets_max {
        let text = format!(
            "there are {count} sockets, and it takes {sockets_max} (FileDescriptorStoreMax=, at \
             most {STORED_MAX})"
        );
        return Err(io::Error::other(text));
    }
    Ok(count)
}

/// Sends a message to the manager, with descriptors.
fn send(text: &str, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let Some(path) = env::var_os("NOTIFY_SOCKET") else {
        return Ok(());
    };
    let address = match path.as_encoded_bytes() {
        [b'@', name @ ..] => UnixAddress::from_abstract_name(name)?,
        _ => UnixAddress::from_pathname(path)?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.connect_addr(&address)?;
    channel::send(&socket, text, descriptors, SendFlags::empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_no_colon_and_are_told_from_those_of_units() {
        let lines = [
            (
                "main bound default 0 [::1]:443",
                "greenroom/main/bound/default/0/[++1]+443",
            ),
            (
                "admin bound plain 1 127.0.0.1:0",
                "greenroom/admin/bound/plain/1/127.0.0.1+0",
            ),
        ];
        for (line, expected) in lines {
            let name = Label::parse(line).and_then(|label| name(&label));
            assert_eq!(name.as_deref(), Some(expected));
            assert!(is_ours(expected));
        }
        assert!(!is_ours("greenroom.socket"));
    }

    #[test]
    fn what_others_keep_or_nobody_waits_for_is_not_stored() {
        for line in [
            "main passed default 0 127.0.0.1:80",
            "main bound default 0 unix:/run/a.sock",
            "main file default 0 /run/a.pid",
        ] {
            let label = Label::parse(line).expect(line);
            assert_eq!(name(&label), None, "{line}");
        }
    }

    #[test]
    fn the_manager_says_how_much_it_takes() {
        assert!(matches!(offered(None), Ok(0)));
        assert!(matches!(offered(Some("64")), Ok(64)));
        for text in ["", "-1", "many"] {
            let error = offered(Some(text)).expect_err(text).to_string();
            assert!(error.contains(&format!("FDSTORE={text}:")), "{error}");
        }
    }
}
