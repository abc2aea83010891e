//! Connections whose thread waits for them.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use crate::{Input, Request, Response};

/// The longest wait for a client to take a response.
const WRITE_MAX: Duration = Duration::from_mins(1);
/// The rest after a failed accept: a descriptor may get free.
const ACCEPT_REST: Duration = Duration::from_millis(10);

/// Accepts the next connection, however long it takes.
#[must_use]
pub fn accept(listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept() {
            Ok((stream, _)) => return stream,
            // Its client has left already.
            Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
            Err(_) => thread::sleep(ACCEPT_REST),
        }
    }
}

/// Serves all requests of a connection, one after the other.
///
/// # Errors
/// Those of the connection; a client that is idle for longer than it may is one.
pub fn converse(
    mut stream: TcpStream,
    idle_max: Duration,
    mut respond: impl FnMut(Request) -> Response,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(idle_max))?;
    stream.set_write_timeout(Some(WRITE_MAX))?;
    let mut input = Input::default();
    let mut received = [0; 4_096];
    loop {
        while let Some(request) = input.take() {
            let response = respond(request);
            stream.write_all(&response.bytes)?;
            if response.close {
                return stream.shutdown(Shutdown::Write);
            }
        }
        match stream.read(&mut received)? {
            0 => return Ok(()),
            bytes => input.add(&received[..bytes]),
        }
    }
}
