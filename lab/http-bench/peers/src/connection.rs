//! One connection of the minimal server.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use crate::heads::{self, Heads};
use crate::server::Response;

/// The longest head that is read.
const LEFTOVER_BYTES_MAX: usize = 64 * 1024;

pub(crate) struct Connection {
    pub(crate) socket: OwnedFd,
    /// Tells this connection from an earlier one in the same slot.
    pub(crate) serial: u64,
    leftover: Vec<u8>,
    owed_bytes: usize,
    response_offset: usize,
    closing: bool,
}

/// The next step with a connection.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Close,
    Read,
    Write,
}

impl Connection {
    pub(crate) fn new(socket: OwnedFd, serial: u64) -> Self {
        let leftover = Vec::new();
        Self {
            socket,
            serial,
            leftover,
            owed_bytes: 0,
            response_offset: 0,
            closing: false,
        }
    }

    /// Reads once; returns the number of requests that became complete, `None` at the end of the
    /// connection.
    pub(crate) fn read(&mut self, scratch: &mut [u8]) -> Option<usize> {
        let received = match recv(&self.socket, &mut *scratch, RecvFlags::empty()) {
            Ok((0, _)) => return None,
            Ok((received, _)) => received,
            Err(Errno::AGAIN | Errno::INTR) => return Some(0),
            Err(_) => return None,
        };
        let heads = self.scan(&scratch[..received])?;
        self.closing |= heads.close;
        Some(heads.count)
    }

    fn scan(&mut self, input: &[u8]) -> Option<Heads> {
        if self.leftover.is_empty() {
            let heads = heads::count(input);
            self.leftover.extend_from_slice(&input[heads.consumed..]);
            return Some(heads);
        }
        if self.leftover.len() + input.len() > LEFTOVER_BYTES_MAX {
            return None;
        }
        self.leftover.extend_from_slice(input);
        let heads = heads::count(&self.leftover);
        self.leftover.drain(..heads.consumed);
        Some(heads)
    }

    /// Writes what was owed and `responses` more.
    pub(crate) fn write(&mut self, response: &Response, responses: usize) -> Next {
        self.owed_bytes += responses * response.bytes();
        while self.owed_bytes > 0 {
            let chunk = response.copies_from(self.response_offset, self.owed_bytes);
            match send(&self.socket, chunk, SendFlags::NOSIGNAL) {
                Ok(sent) => self.sent(sent, response.bytes()),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Next::Write,
                Err(_) => return Next::Close,
            }
        }
        if self.closing {
            Next::Close
        } else {
            Next::Read
        }
    }

    fn sent(&mut self, sent: usize, response_bytes: usize) {
        self.owed_bytes -= sent;
        self.response_offset = (self.response_offset + sent) % response_bytes;
    }
}
