use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

/// Time for which the system keeps a silent connection to itself: we get it when the first
/// repetition of the handshake's SYN-ACK is acknowledged, about a second later.
pub(crate) const DEFERRED: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug)]
struct DeferAccept;

nix::setsockopt_impl!(
    DeferAccept,
    libc::IPPROTO_TCP,
    libc::TCP_DEFER_ACCEPT,
    usize,
    nix::sys::socket::sockopt::SetUsize
);

/// Has connections given to us when their first bytes are there, so that the first read finds
/// them (tcp(7), `TCP_DEFER_ACCEPT`).
pub(super) fn set(socket: &impl AsFd) -> io::Result<()> {
    let seconds = usize::try_from(DEFERRED.as_secs()).unwrap_or(1);
    nix::sys::socket::setsockopt(socket, DeferAccept, &seconds)?;
    Ok(())
}
