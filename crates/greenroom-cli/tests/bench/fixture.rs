//! Servers that respond as a test prescribes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use parking_lot::Mutex;

/// A server's reaction to a request.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// Sends this and waits for the next request.
    Keep(Vec<u8>),
    /// Sends this and closes.
    Close(Vec<u8>),
    /// Sends this, and nothing more; the connection stays open.
    Hang(Vec<u8>),
}

/// A received request.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// The number of the request from 0, over all connections.
    pub(crate) number: usize,
    /// The text from the request line to the empty line.
    pub(crate) head: String,
    pub(crate) body: String,
    pub(crate) peer: SocketAddr,
    /// The number of the connection from 0, in the order of acceptance.
    pub(crate) connection: usize,
}

impl Request {
    /// Returns the path, or the URL for a proxy.
    pub(crate) fn path(&self) -> &str {
        self.head.split(' ').nth(1).unwrap_or_default()
    }
}

/// A server on a free port; its threads end with the test program.
pub(crate) struct Fixture {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<Request>>>,
}

type Handler = dyn Fn(&Request) -> Reply + Send + Sync;

impl Fixture {
    pub(crate) fn start(handler: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let seen = Arc::default();
        let (handler, noted): (Arc<Handler>, _) = (Arc::new(handler), Arc::clone(&seen));
        thread::spawn(move || {
            for (connection, stream) in listener.incoming().flatten().enumerate() {
                let (handler, seen) = (Arc::clone(&handler), Arc::clone(&noted));
                // A client that leaves ends its connection only.
                thread::spawn(move || serve(&stream, connection, &handler, &seen));
            }
        });
        Self { address, seen }
    }

    /// Starts a server that responds with `hello` to every request.
    pub(crate) fn hello() -> Self {
        Self::start(|_| Reply::Keep(response("200 OK", "hello\n")))
    }

    /// Starts a server that accepts and reads, and sends nothing.
    pub(crate) fn silent() -> Self {
        Self::start(|_| Reply::Hang(Vec::new()))
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Returns the requests until now.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.seen.lock().clone()
    }

    /// Returns the number of connections on which there were requests until now.
    pub(crate) fn connections(&self) -> usize {
        let mut connections: Vec<_> = self.requests().iter().map(|one| one.connection).collect();
        connections.sort_unstable();
        connections.dedup();
        connections.len()
    }
}

/// Returns a whole response with this status and body.
pub(crate) fn response(status: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\nServer: fixture/1.0\r\nContent-Length: {length}\r\n\r\n{body}")
        .into_bytes()
}

fn serve(
    stream: &TcpStream,
    connection: usize,
    handler: &Arc<Handler>,
    seen: &Mutex<Vec<Request>>,
) -> Option<()> {
    let peer = stream.peer_addr().ok()?;
    let mut input = BufReader::new(stream);
    let mut output = stream;
    loop {
        let (head, body) = read(&mut input)?;
        let request = note(seen, head, body, peer, connection);
        match handler(&request) {
            Reply::Keep(bytes) => output.write_all(&bytes).ok()?,
            Reply::Close(bytes) => return output.write_all(&bytes).ok(),
            Reply::Hang(bytes) => {
                output.write_all(&bytes).ok()?;
                // Returns when the client closes.
                return input.read_to_end(&mut Vec::new()).ok().map(drop);
            }
        }
    }
}

fn read(input: &mut impl BufRead) -> Option<(String, String)> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if input.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let mut fields = head.lines().filter_map(|line| line.split_once(": "));
    let length = fields.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length = length.map_or(0, |(_, value)| value.parse().expect("a length"));
    let mut body = vec![0; length];
    input.read_exact(&mut body).ok()?;
    Some((head, String::from_utf8(body).expect("tests send text")))
}

fn note(
    seen: &Mutex<Vec<Request>>,
    head: String,
    body: String,
    peer: SocketAddr,
    connection: usize,
) -> Request {
    let mut seen = seen.lock();
    let request = Request {
        number: seen.len(),
        head,
        body,
        peer,
        connection,
    };
    seen.push(request.clone());
    request
}
