use std::os::fd::AsFd;

use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::{Accepted, AcceptedSocket};

/// The server is behind. Valid as an answer to any request of HTTP/1.1, as it has no body.
pub(crate) const BUSY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\n\
    Retry-After: 1\r\n\
    Connection: close\r\n\
    Content-Length: 0\r\n\r\n";
/// The client has too many connections (RFC 6585, 4).
pub(crate) const TOO_MANY: &[u8] = b"HTTP/1.1 429 Too Many Requests\r\n\
    Retry-After: 1\r\n\
    Connection: close\r\n\
    Content-Length: 0\r\n\r\n";
/// What is read of a request that nobody looks at. A socket that is closed with unread input is
/// reset, and the reset may overtake the answer.
const UNHEEDED_BYTES: usize = 4 * 1_024;

impl Accepted {
    /// Answers with `response` whatever the request is, and closes the connection.
    pub(crate) fn refuse(self, response: &[u8]) {
        match &self.socket {
            AcceptedSocket::Tcp(stream) => answer(stream, response),
            AcceptedSocket::Unix(stream) => answer(stream, response),
            // Only those of the server's own listeners are refused unread.
            AcceptedSocket::Any(_) => {}
        }
    }
}

/// A client that has left learns nothing, and need not.
fn answer(socket: impl AsFd, response: &[u8]) {
    let mut unheeded = [0; UNHEEDED_BYTES];
    let _read = recv(&socket, &mut unheeded[..], RecvFlags::empty());
    let _sent = send(&socket, response, SendFlags::NOSIGNAL);
}
