//! The transport to a server: plain or TLS.

use std::io::{self, IoSlice, Read, Write};
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};

use rustls::ClientConnection;

use super::socket::Socket;
use crate::run::Endpoint;

/// The most plain bytes that TLS buffers before the socket takes them.
const TLS_BUFFER_BYTES_MAX: usize = 64 * 1024;

/// A connection below HTTP.
#[derive(Debug)]
pub(super) enum Transport {
    Plain(Socket),
    Tls(Box<Tls>),
}

#[derive(Debug)]
pub(super) struct Tls {
    socket: Socket,
    session: ClientConnection,
}

impl Transport {
    pub(super) fn connect(
        endpoint: &Endpoint,
        source: Option<IpAddr>,
        window_bytes: Option<usize>,
    ) -> io::Result<Self> {
        let socket = Socket::connect(&endpoint.address, source, window_bytes)?;
        let Some((config, name)) = &endpoint.tls else {
            return Ok(Self::Plain(socket));
        };
        let mut session = ClientConnection::new(config.clone(), name.clone()).map_err(tls_error)?;
        session.set_buffer_limit(Some(TLS_BUFFER_BYTES_MAX));
        Ok(Self::Tls(Box::new(Tls { socket, session })))
    }

    fn socket(&self) -> &Socket {
        match self {
            Self::Plain(socket) => socket,
            Self::Tls(tls) => &tls.socket,
        }
    }

    /// Returns true if buffered bytes wait for space in the socket.
    pub(super) fn wants_write(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Tls(tls) => tls.session.wants_write(),
        }
    }

    /// Sends small segments at once, where more than one is in flight.
    pub(super) fn set_no_delay(&self) -> io::Result<()> {
        self.socket().set_no_delay()
    }

    /// Returns true if a short read means that the socket is empty.
    pub(super) fn is_plain(&self) -> bool {
        matches!(self, Self::Plain(_))
    }

    /// Returns true if requests can be sent already, without a handshake.
    pub(super) fn is_ready(&self) -> bool {
        match self {
            Self::Plain(socket) => socket.is_connected(),
            Self::Tls(_) => false,
        }
    }

    /// Continues the handshake; true if it is over. Without TLS it always is.
    pub(super) fn handshake(&mut self) -> io::Result<bool> {
        let Self::Tls(tls) = self else {
            return Ok(true);
        };
        while tls.session.is_handshaking() {
            tls.write_out()?;
            if tls.session.is_handshaking() && !tls.read_in()? {
                return Ok(false);
            }
        }
        tls.write_out()?;
        Ok(true)
    }

    /// Reads available bytes; `WouldBlock` when there are none, 0 at the end.
    pub(super) fn receive(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.receive(buffer),
            Self::Tls(tls) => tls.receive(buffer),
        }
    }

    /// Takes bytes to send; returns their number.
    pub(super) fn send(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.send(slices),
            Self::Tls(tls) => tls.send(slices),
        }
    }

    /// Sends buffered bytes; `WouldBlock` when the socket does not take all of them.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(_) => Ok(()),
            Self::Tls(tls) => {
                tls.write_out()?;
                if tls.session.wants_write() {
                    return Err(io::ErrorKind::WouldBlock.into());
                }
                Ok(())
            }
        }
    }

    /// Describes the handshake's outcome in ab's form.
    pub(super) fn describe_tls(&self) -> Option<String> {
        match self {
            Self::Plain(_) => None,
            Self::Tls(tls) => crate::tls::describe(&tls.session),
        }
    }
}

impl Tls {
    /// Reads from the socket until it is empty; true if any bytes came.
    fn read_in(&mut self) -> io::Result<bool> {
        match self.session.read_tls(&mut self.socket) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        }
        if let Err(error) = self.session.process_new_packets() {
            // Sends the TLS alert, if the peer still listens.
            let _ = self.write_out();
            return Err(tls_error(error));
        }
        Ok(true)
    }

    fn write_out(&mut self) -> io::Result<()> {
        while self.session.wants_write() {
            match self.session.write_tls(&mut self.socket) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.session.reader().read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // A peer that ends TLS without `close_notify` ends it all the same: the body's
                // framing shows if it was whole.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                read => return read,
            }
            match self.read_in() {
                Ok(true) => {}
                Ok(false) => return Err(io::ErrorKind::WouldBlock.into()),
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                Err(error) => return Err(error),
            }
        }
    }

    fn send(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let taken = self.session.writer().write_vectored(slices)?;
        self.write_out()?;
        if taken == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(taken)
    }
}

impl AsFd for Transport {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket().as_fd()
    }
}

fn tls_error(error: rustls::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
