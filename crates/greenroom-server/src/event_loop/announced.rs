//! Connections on which a proxy announces its client: the PROXY protocol.

use std::io;
use std::rc::Rc;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use tokio::time::{Instant, timeout};

use super::acceptor::{begin, watched};
use super::{Loop, tasks};
use crate::app::App;
use crate::listen::{Accepted, AcceptedSocket, DEFERRED};
use crate::proxies::{Announced, HeaderFault, PROXY_HEADER_BYTES_MAX, read_proxy_header};

/// A loop warns of connections without a header at most once in this time: whoever can connect
/// could fill the log.
const WARNED_EVERY: Duration = Duration::from_secs(1);

/// The reason for not serving a connection.
#[derive(Debug, thiserror::Error)]
enum Unannounced {
    #[error("it comes from no trusted proxy")]
    Untrusted,
    #[error(transparent)]
    Header(#[from] HeaderFault),
    #[error("it ended before its header of the PROXY protocol")]
    Ended,
    #[error("its header of the PROXY protocol did not come in time")]
    Late,
    #[error(transparent)]
    Broken(#[from] io::Error),
}

/// Begins to serve a connection as its client's, at once if the header is there already.
pub(super) fn begin_announced<A: App>(home: &Rc<Loop<A>>, mut accepted: Accepted) {
    let proxies = &home.settings.trusted_proxies;
    let peer = accepted.info.peer.map(|peer| peer.ip());
    if !proxies.is_empty() && !proxies.trusts(peer) {
        return tell(home, &accepted, &Unannounced::Untrusted);
    }
    match read_on(&accepted.socket, &mut accepted.input) {
        Ok(Some(announced)) => begin(home, accepted.announced(announced)),
        Ok(None) => {
            tasks::spawn(wait(Rc::clone(home), accepted));
        }
        Err(error) => tell(home, &accepted, &error),
    }
}

/// Waits for the header, for no longer than for a head, and in a drain than for a request.
async fn wait<A: App>(home: Rc<Loop<A>>, mut accepted: Accepted) {
    // The connection takes its own when it begins.
    let _permit = home.permits.acquire(None);
    let mut time = home.settings.limits.head_timeout;
    if accepted.deferred && accepted.input.is_empty() {
        time = time.saturating_sub(DEFERRED);
    }
    let read = tokio::select! {
        biased;
        () = home.ended() => return,
        // Before the grace is looked at: a header that is there is read without one, too.
        read = timeout(time, read_header(&mut accepted)) => read,
        () = home.grace_over() => Ok(Err(Unannounced::Late)),
    };
    match read.unwrap_or(Err(Unannounced::Late)) {
        Ok(announced) => begin(&home, accepted.announced(announced)),
        Err(error) => tell(&home, &accepted, &error),
    }
}

async fn read_header(accepted: &mut Accepted) -> Result<Announced, Unannounced> {
    let socket = watched(accepted.socket.descriptor()?)?;
    loop {
        let mut ready = socket.readable().await?;
        match read_on(&accepted.socket, &mut accepted.input)? {
            Some(announced) => return Ok(announced),
            None => ready.clear_ready(),
        }
    }
}

/// Reads until the header is there as a whole; `None` if the socket has no more for now.
fn read_on(socket: &AcceptedSocket, input: &mut Vec<u8>) -> Result<Option<Announced>, Unannounced> {
    let mut room = [0; PROXY_HEADER_BYTES_MAX];
    loop {
        match recv(socket.descriptor()?, &mut room[..], RecvFlags::empty()) {
            Ok((_, 0)) => return Err(Unannounced::Ended),
            Ok((_, length)) => input.extend_from_slice(&room[..length]),
            Err(Errno::AGAIN) => return Ok(None),
            Err(Errno::INTR) => {}
            Err(error) => return Err(Unannounced::Broken(error.into())),
        }
        if let Some(announced) = read_proxy_header(input)? {
            return Ok(Some(announced));
        }
    }
}

/// Logs that a connection is closed unserved: a warning if a proxy or the server may be set up
/// wrongly, none for a probe that only looks whether the server is there.
fn tell<A: App>(home: &Loop<A>, accepted: &Accepted, error: &Unannounced) {
    let (peer, address) = (&accepted.info.peer, &accepted.info.local);
    let is_fault = matches!(error, Unannounced::Untrusted | Unannounced::Header(_));
    let warned_at = home.unannounced_warned_at.get();
    if is_fault && warned_at.is_none_or(|at| at.elapsed() >= WARNED_EVERY) {
        home.unannounced_warned_at.set(Some(Instant::now()));
        tracing::warn!(%error, ?peer, %address, "a connection is closed unserved");
    } else {
        tracing::debug!(%error, ?peer, %address, "a connection is closed unserved");
    }
}

impl Accepted {
    /// Returns the connection of the client that the header announces, with what came behind the
    /// header.
    fn announced(mut self, announced: Announced) -> Self {
        self.is_proxied = false;
        self.deferred = false;
        self.input.drain(..announced.length);
        if let Some((source, destination)) = announced.addresses {
            self.info.peer = Some(source);
            self.info.local = destination.into();
        }
        self
    }
}
