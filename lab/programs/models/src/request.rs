//! Requests as bytes, and their responses.

use std::mem;
use std::time::Duration;

use num_bigint::BigUint;

/// Bytes of a request's head.
const HEAD_BYTES_MAX: usize = 8_192;
const FIELDS_MAX: usize = 64;
/// The longest wait, in milliseconds.
pub const MILLIS_MAX: u64 = 60_000;
/// The largest number of `/compute`, in additions.
pub const N_MAX: u64 = 100_000;

/// A request: first the wait, then the work.
#[derive(Debug)]
pub struct Request {
    /// Zero for those that need not wait
    pub wait: Duration,
    /// The work that makes the response
    pub work: Work,
    /// True if the response is the connection's last
    pub close: bool,
}

/// The work of a handler.
#[derive(Debug, PartialEq, Eq)]
pub enum Work {
    /// A constant
    Hello,
    /// Nothing but the wait
    Waited,
    /// So many additions of large numbers
    Compute(u64),
    /// One more on the counter that all requests share
    Count,
    /// The status line of a request that is refused
    Refused(&'static str),
}

impl Request {
    /// Works, and returns the response. `count` adds to the shared counter.
    pub fn respond(self, count: impl FnOnce() -> u64) -> Response {
        let (status, body) = match self.work {
            Work::Hello => ("200 OK", "Hello, world!\n".to_owned()),
            Work::Waited => ("200 OK", "waited\n".to_owned()),
            Work::Compute(n) => ("200 OK", format!("{}\n", fibonacci(n))),
            Work::Count => ("200 OK", format!("{}\n", count())),
            Work::Refused(status) => (status, format!("{status}\n")),
        };
        Response::new(status, &body, self.close)
    }

    /// Returns the response in place of the work: there is too much of it.
    #[must_use]
    pub fn overloaded(mut self) -> Response {
        self.work = Work::Refused("503 Service Unavailable");
        self.respond(|| 0)
    }

    fn refused(status: &'static str) -> Self {
        Self {
            wait: Duration::ZERO,
            work: Work::Refused(status),
            close: true,
        }
    }
}

/// A response, ready to be sent.
#[derive(Debug)]
pub struct Response {
    /// Head and body
    pub bytes: Vec<u8>,
    /// True if the connection ends after it
    pub close: bool,
}

impl Response {
    fn new(status: &str, body: &str, close: bool) -> Self {
        let length = body.len();
        let close_field = if close { "Connection: close\r\n" } else { "" };
        let text = format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\
             {close_field}\r\n{body}"
        );
        Self {
            bytes: text.into_bytes(),
            close,
        }
    }
}

/// Bytes that a client has sent and nobody has read yet.
#[derive(Debug, Default)]
pub struct Input {
    bytes: Vec<u8>,
}

impl Input {
    /// Adds what was received. Call [`take`](Self::take) until it returns `None` between two calls,
    /// and the input holds no more than one head and what came with it.
    pub fn add(&mut self, received: &[u8]) {
        self.bytes.extend_from_slice(received);
    }

    /// Returns whether there is something, if only a part of a request.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Takes the next request, if all of its head is there.
    pub fn take(&mut self) -> Option<Request> {
        if self.bytes.is_empty() {
            return None;
        }
        let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
        let mut head = httparse::Request::new(&mut fields);
        let (request, bytes) = match head.parse(&self.bytes) {
            Ok(httparse::Status::Complete(bytes)) => (parsed(&head), bytes),
            Ok(httparse::Status::Partial) if self.bytes.len() < HEAD_BYTES_MAX => return None,
            Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
                let status = "431 Request Header Fields Too Large";
                (Request::refused(status), self.bytes.len())
            }
            Err(_) => (Request::refused("400 Bad Request"), self.bytes.len()),
        };
        if bytes == self.bytes.len() {
            self.bytes.clear();
        } else {
            self.bytes.drain(..bytes);
        }
        Some(request)
    }
}

fn parsed(head: &httparse::Request<'_, '_>) -> Request {
    let mut close = head.version == Some(0);
    for field in head.headers.iter() {
        let is = |name: &str| field.name.eq_ignore_ascii_case(name);
        if is("transfer-encoding") || is("content-length") {
            return Request::refused("413 Content Too Large");
        }
        close |= is("connection") && field.value.eq_ignore_ascii_case(b"close");
    }
    if head.method != Some("GET") {
        return Request::refused("405 Method Not Allowed");
    }
    let routed = route(head.path.unwrap_or_default());
    let (wait, work) = routed.unwrap_or((0, Work::Refused("404 Not Found")));
    Request {
        wait: Duration::from_millis(wait),
        work,
        close,
    }
}

fn route(path: &str) -> Option<(u64, Work)> {
    let mut parts = path.strip_prefix('/')?.split('/');
    let name = parts.next()?;
    let mut number = |most: u64| parts.next()?.parse().ok().filter(|number| *number <= most);
    let routed = match name {
        "hello" => (0, Work::Hello),
        "wait" => (number(MILLIS_MAX)?, Work::Waited),
        "compute" => (0, Work::Compute(number(N_MAX)?)),
        "both" => (number(MILLIS_MAX)?, Work::Compute(number(N_MAX)?)),
        "count" => (0, Work::Count),
        _ => return None,
    };
    parts.next().is_none().then_some(routed)
}

/// Returns a Fibonacci number, by as many additions.
#[must_use]
pub fn fibonacci(n: u64) -> BigUint {
    let mut current = BigUint::from(0_u8);
    let mut next = BigUint::from(1_u8);
    for _ in 0..n {
        current += &next;
        mem::swap(&mut current, &mut next);
    }
    current
}
