use std::time::Duration;

use super::{Accepted, AcceptedSocket};

#[derive(Clone, Copy, Debug)]
struct TcpInfo;

nix::getsockopt_impl!(
    TcpInfo,
    libc::IPPROTO_TCP,
    libc::TCP_INFO,
    libc::tcp_info,
    nix::sys::socket::sockopt::GetStruct<libc::tcp_info>
);

impl Accepted {
    /// Returns the time that a new connection has waited since its client sent the request (tcp(7),
    /// `TCP_INFO`), to the system's clock tick. `None` on a Unix socket, where the system does not
    /// say.
    pub(crate) fn waited(&self) -> Option<Duration> {
        let AcceptedSocket::Tcp(stream) = &self.socket else {
            return None;
        };
        let info = nix::sys::socket::getsockopt(stream, TcpInfo).ok()?;
        Some(Duration::from_millis(info.tcpi_last_data_recv.into()))
    }
}
