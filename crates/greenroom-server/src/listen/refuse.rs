use std::os::fd::AsFd;

use bytes::Bytes;
use http::Response;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::{Accepted, AcceptedSocket};
#[cfg(feature = "tls")]
use crate::connection::Socket;

/// The response of a server that is behind. It is valid for any request of HTTP/1.1, as it has no
/// body.
pub(crate) const BUSY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\n\
    Retry-After: 1\r\n\
    Connection: close\r\n\
    Content-Length: 0\r\n\r\n";
/// The response to a client that has too many connections (RFC 6585, 4).
pub(crate) const TOO_MANY: &[u8] = b"HTTP/1.1 429 Too Many Requests\r\n\
    Retry-After: 1\r\n\
    Connection: close\r\n\
    Content-Length: 0\r\n\r\n";
/// Bytes that are read of a request that nobody looks at. A socket that is closed with unread input
/// is reset, and the reset may overtake the response.
const UNHEEDED_BYTES: usize = 4 * 1_024;

/// A response to whatever a connection sends first, as it goes over the wire.
#[derive(Clone, Debug)]
pub(crate) struct Unread {
    bytes: Vec<u8>,
    head_bytes: usize,
}

impl Unread {
    pub(crate) fn without_body(head: &[u8]) -> Self {
        Self {
            bytes: head.to_vec(),
            head_bytes: head.len(),
        }
    }

    /// Encodes a response. It has no `Date`, which would be that of its making.
    pub(crate) fn new(response: &Response<Bytes>) -> Self {
        let mut bytes = format!("HTTP/1.1 {}\r\n", response.status()).into_bytes();
        for (name, value) in response.headers() {
            bytes.extend_from_slice(name.as_str().as_bytes());
            bytes.extend_from_slice(b": ");
            bytes.extend_from_slice(value.as_bytes());
            bytes.extend_from_slice(b"\r\n");
        }
        let length = response.body().len();
        let end = format!("Connection: close\r\nContent-Length: {length}\r\n\r\n");
        bytes.extend_from_slice(end.as_bytes());
        let head_bytes = bytes.len();
        bytes.extend_from_slice(response.body());
        Self { bytes, head_bytes }
    }

    /// Returns what is sent to a client whose input begins so: to HEAD no content (RFC 9110,
    /// 9.3.2).
    pub(crate) fn for_input(&self, input: &[u8]) -> &[u8] {
        if input.starts_with(b"HEAD ") {
            &self.bytes[..self.head_bytes]
        } else {
            &self.bytes
        }
    }
}

impl Accepted {
    /// Responds with `response` whatever the request is, and closes the connection.
    pub(crate) fn refuse(self, response: &Unread) {
        // A client that waits for a handshake understands nothing but the end.
        #[cfg(feature = "tls")]
        if self.security == super::Security::Tls {
            return Socket::from(self.socket).reset_at_end();
        }
        match &self.socket {
            AcceptedSocket::Tcp(stream) => respond(stream, response),
            AcceptedSocket::Unix(stream) => respond(stream, response),
            // Only those of the server's own listeners are refused unread.
            AcceptedSocket::Any(_) => {}
            #[cfg(feature = "tls")]
            AcceptedSocket::Tls(_) => {}
        }
    }
}

/// A client that has left learns nothing, and need not.
fn respond(socket: impl AsFd, response: &Unread) {
    let mut unheeded = [0; UNHEEDED_BYTES];
    let read = recv(&socket, &mut unheeded[..], RecvFlags::empty());
    let read = read.map_or(0, |(_, bytes)| bytes);
    let response = response.for_input(&unheeded[..read]);
    let _sent = send(&socket, response, SendFlags::NOSIGNAL);
}
