//! One client connection.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::time::Instant;

use anyhow::{Context, bail};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, connect, recv, send,
    socket_with, sockopt,
};

use crate::response::{Complete, Reader};

pub(crate) struct Connection {
    pub(crate) socket: OwnedFd,
    /// When the request under way should have been sent; `None` while idle.
    pub(crate) since: Option<Instant>,
    sent: bool,
    reader: Reader,
}

impl Connection {
    /// Begins to connect, from `source` if one is named.
    pub(crate) fn open(target: SocketAddrV4, source: Option<Ipv4Addr>) -> anyhow::Result<Self> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)
            .context("no socket")?;
        sockopt::set_tcp_nodelay(&socket, true)?;
        if let Some(source) = source {
            bind(&socket, &SocketAddrV4::new(source, 0))
                .with_context(|| format!("no port left on {source}"))?;
        }
        match connect(&socket, &target) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(error) => return Err(error).context("connect"),
        }
        Ok(Self {
            socket,
            since: None,
            sent: true,
            reader: Reader::default(),
        })
    }

    /// Sends a request, or leaves it to [`Connection::writable`] while the connection is not established.
    pub(crate) fn start(&mut self, request: &[u8], since: Instant) -> anyhow::Result<()> {
        self.since = Some(since);
        self.sent = false;
        self.writable(request)
    }

    /// Sends the request that waited for the connection.
    pub(crate) fn writable(&mut self, request: &[u8]) -> anyhow::Result<()> {
        if self.sent {
            return Ok(());
        }
        match send(&self.socket, request, SendFlags::NOSIGNAL) {
            Ok(sent) if sent == request.len() => self.sent = true,
            Ok(sent) => bail!("only {sent} bytes of the request could be sent"),
            Err(Errno::AGAIN | Errno::NOTCONN) => {}
            Err(error) => return Err(error).context("send"),
        }
        Ok(())
    }

    /// Reads until the response is complete or the socket is empty.
    pub(crate) fn readable(&mut self, scratch: &mut [u8]) -> anyhow::Result<Option<Complete>> {
        loop {
            let received = match recv(&self.socket, &mut *scratch, RecvFlags::empty()) {
                Ok((0, _)) => bail!("the server closed the connection"),
                Ok((received, _)) => received,
                Err(Errno::AGAIN) => return Ok(None),
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error).context("receive"),
            };
            if let Some(complete) = self.reader.feed(&scratch[..received])? {
                return Ok(Some(complete));
            }
        }
    }
}
