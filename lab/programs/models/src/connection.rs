//! A connection that never waits.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::{CONNECTIONS_MAX, Input, Request, Response};

/// A connection that was silent for so long is closed.
const IDLE_MAX: Duration = Duration::from_mins(1);
/// Connections that are accepted at once.
const ACCEPT_MAX: usize = 256;

/// A connection with what it has received and what it has yet to send.
#[derive(Debug)]
pub struct Connection {
    pub(crate) stream: TcpStream,
    input: Input,
    output: Vec<u8>,
    close: bool,
    active: Instant,
    /// Its holders are counted
    _open: Arc<()>,
}

/// Accepts connections that are there. One beyond the limit is closed, as is one that has broken
/// off already.
pub(crate) fn accept_many(listener: &TcpListener, open: &Arc<()>) -> Vec<Connection> {
    let accepted = (0..ACCEPT_MAX).map_while(|_| listener.accept().ok());
    let accepted = accepted.filter(|_| Arc::strong_count(open) <= CONNECTIONS_MAX);
    accepted
        .filter_map(|(stream, _)| Connection::new(stream, open).ok())
        .collect()
}

impl Connection {
    fn new(stream: TcpStream, open: &Arc<()>) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            input: Input::default(),
            output: Vec::new(),
            close: false,
            active: Instant::now(),
            _open: Arc::clone(open),
        })
    }

    /// Adds a response to what is to be sent.
    pub fn respond(&mut self, response: &Response) {
        self.output.extend_from_slice(&response.bytes);
        self.close |= response.close;
    }

    /// Sends what the client takes, and returns whether that was all.
    ///
    /// # Errors
    /// The connection is over: its last response was sent, or the client has left.
    pub fn send(&mut self) -> io::Result<bool> {
        while !self.output.is_empty() {
            match self.stream.write(&self.output) {
                Ok(bytes) => drop(self.output.drain(..bytes)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        if self.close {
            self.stream.shutdown(Shutdown::Write)?;
            return Err(ErrorKind::ConnectionAborted.into());
        }
        Ok(true)
    }

    /// Receives the next request, or returns `None` if it is not there yet.
    ///
    /// # Errors
    /// The connection is over: the client has left.
    pub fn receive(&mut self) -> io::Result<Option<Request>> {
        self.active = Instant::now();
        let mut received = [0; 4_096];
        loop {
            if let Some(request) = self.input.take() {
                return Ok(Some(request));
            }
            match self.stream.read(&mut received) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(bytes) => self.input.add(&received[..bytes]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns whether something is to be sent.
    #[must_use]
    pub fn has_output(&self) -> bool {
        !self.output.is_empty()
    }

    /// Returns whether a part of the next request was received.
    #[must_use]
    pub fn has_input(&self) -> bool {
        !self.input.is_empty()
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.active.elapsed() > IDLE_MAX
    }
}
