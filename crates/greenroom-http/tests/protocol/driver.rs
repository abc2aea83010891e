//! Drives a [`Connection`] as a server would: keeps what was not consumed, responds to each request
//! when it is complete, stops at a rejection. The [`Transcript`] records what a peer and an
//! application saw.

use greenroom_http::{
    BodyLength, BodySize, Connection, Context, Event, Limits, Reason, RequestHead,
};
use http::{HeaderMap, Method, Response, StatusCode, Version};

/// One run of a connection, as seen from both sides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Transcript {
    pub(crate) messages: Vec<Message>,
    pub(crate) output: Vec<u8>,
    pub(crate) ending: Ending,
    /// Bytes that were not consumed, if the connection waits for more.
    pub(crate) left: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Ending {
    #[default]
    Waiting,
    Closed,
    Http2,
    Refused(Reason),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) method: Method,
    pub(crate) target: String,
    pub(crate) version: Version,
    pub(crate) fields: HeaderMap,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Option<HeaderMap>,
    pub(crate) expects_continue: bool,
    pub(crate) upgrade: bool,
    pub(crate) complete: bool,
}

/// The application's response to a message.
pub(crate) struct Reply {
    pub(crate) response: Response<()>,
    pub(crate) size: BodySize,
    pub(crate) parts: Vec<Vec<u8>>,
    pub(crate) trailers: Option<HeaderMap>,
}

impl Reply {
    /// Creates a 200 with a body of known size.
    pub(crate) fn text(body: &str) -> Self {
        Self {
            response: Response::new(()),
            size: BodySize::Exact(body.len() as u64),
            parts: vec![body.as_bytes().to_vec()],
            trailers: None,
        }
    }

    /// Creates a 200 whose size is known at its end.
    pub(crate) fn stream(parts: &[&str]) -> Self {
        Self {
            response: Response::new(()),
            size: BodySize::Unknown,
            parts: parts.iter().map(|part| part.as_bytes().to_vec()).collect(),
            trailers: None,
        }
    }
}

/// Responds with what was received: method, target and body. Every other length is streamed.
pub(crate) fn echo(message: &Message) -> Reply {
    let body = String::from_utf8_lossy(&message.body);
    let text = format!("{} {} {body}", message.method, message.target);
    if text.len() % 2 == 0 {
        return Reply::text(&text);
    }
    let (head, tail) = text.split_at(message.method.as_str().len());
    Reply::stream(&[head, tail])
}

pub(crate) struct Driver<A> {
    pub(crate) connection: Connection,
    pub(crate) context: Context,
    application: A,
    input: Vec<u8>,
    at: usize,
    transcript: Transcript,
    over: bool,
}

impl<A: FnMut(&Message) -> Reply> Driver<A> {
    pub(crate) fn new(limits: Limits, application: A) -> Self {
        Self {
            connection: Connection::new(),
            context: Context::new(limits, std::time::UNIX_EPOCH),
            application,
            input: Vec::new(),
            at: 0,
            transcript: Transcript::default(),
            over: false,
        }
    }

    /// Offers more bytes and goes on for as long as there is progress.
    pub(crate) fn offer(&mut self, piece: &[u8]) {
        self.input.extend_from_slice(piece);
        let steps_max = 4 * self.input.len() + 16;
        for _ in 0..steps_max {
            if self.over || !self.step() {
                return;
            }
        }
        panic!("no progress after {steps_max} steps");
    }

    pub(crate) fn finish(mut self) -> Transcript {
        if self.transcript.ending == Ending::Waiting {
            self.transcript.left = self.input.split_off(self.at);
        }
        self.transcript
    }

    /// Takes one step. Returns `true` if another may follow without more input.
    fn step(&mut self) -> bool {
        let offered = &self.input[self.at..];
        let received = match self.connection.receive(offered, &mut self.context) {
            Ok(received) => received,
            Err(rejected) => {
                self.refuse(rejected.reason);
                return false;
            }
        };
        assert!(received.consumed <= offered.len(), "consumed too much");
        self.at += received.consumed;
        match received.event {
            Event::NeedMore => return false,
            Event::Http2Preface => self.end(Ending::Http2),
            Event::Head(head) => {
                let complete = head.body == BodyLength::None;
                let (message, fields) = message(*head);
                self.transcript.messages.push(message);
                self.context.recycle(fields);
                if complete {
                    self.respond();
                }
            }
            Event::Data(data) => {
                assert!(!data.is_empty(), "an empty part of a body");
                last(&mut self.transcript).body.extend_from_slice(data);
            }
            Event::Trailers(map) => last(&mut self.transcript).trailers = Some(*map),
            Event::End => self.respond(),
            Event::RespondFirst => {
                assert!(!self.connection.keeps_alive(), "a response is missing");
                self.end(Ending::Closed);
            }
        }
        true
    }

    fn respond(&mut self) {
        assert!(self.connection.is_received() && self.connection.is_response_due());
        let message = last(&mut self.transcript);
        message.complete = true;
        let reply = (self.application)(message);
        let out = &mut self.transcript.output;
        let connection = &mut self.connection;
        connection.respond(&reply.response, reply.size, &self.context, out);
        for part in &reply.parts {
            let framed = connection.data(part.len(), out);
            out.extend_from_slice(&part[..framed.length]);
            out.extend_from_slice(framed.end);
        }
        let finished = connection.finish(reply.trailers.as_ref(), out);
        assert!(finished.is_ok() || !connection.keeps_alive());
    }

    fn refuse(&mut self, reason: Reason) {
        let out = &mut self.transcript.output;
        let response = plain(reason.status(), &reason.to_string());
        self.connection.refuse(&response, &self.context, out);
        self.end(Ending::Refused(reason));
        let rest = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        let after = self.connection.receive(rest, &mut self.context);
        let after = after.expect("a refused connection gives no second rejection");
        assert!(matches!(after.event, Event::RespondFirst) && after.consumed == 0);
    }

    fn end(&mut self, ending: Ending) {
        self.transcript.ending = ending;
        self.over = true;
    }
}

fn last(transcript: &mut Transcript) -> &mut Message {
    transcript.messages.last_mut().expect("a head came first")
}

/// Returns the message so far, and the map of its fields for reuse.
fn message(head: RequestHead) -> (Message, HeaderMap) {
    let (parts, ()) = head.request.into_parts();
    let message = Message {
        method: parts.method,
        target: parts.uri.to_string(),
        version: parts.version,
        fields: parts.headers.clone(),
        body: Vec::new(),
        trailers: None,
        expects_continue: head.expects_continue,
        upgrade: head.upgrade,
        complete: false,
    };
    (message, parts.headers)
}

/// Runs these pieces of input through a connection of its own.
pub(crate) fn run<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, limits: Limits) -> Transcript {
    let mut driver = Driver::new(limits, echo);
    for piece in pieces {
        driver.offer(piece);
    }
    driver.finish()
}

/// Asserts that `pieces`, which together are `whole`, are read as `whole` is.
///
/// The one difference allowed: a malformed head (or trailer section) that is not complete may be
/// refused later if it arrives in pieces, but then for the same reason.
pub(crate) fn assert_same_in_pieces(whole: &[u8], pieces: &[&[u8]], limits: Limits) {
    let at_once = run([whole], limits);
    let mut in_pieces = run(pieces.iter().copied(), limits);
    let refused = matches!(at_once.ending, Ending::Refused(_));
    if refused && in_pieces.ending == Ending::Waiting {
        let filler = vec![b'x'; in_pieces.left.len() + 1];
        in_pieces = run(pieces.iter().copied().chain([&filler[..]]), limits);
    }
    assert_eq!(at_once, in_pieces);
}

/// Returns a response of the server's own: a line of text.
pub(crate) fn plain(status: StatusCode, line: &str) -> Response<String> {
    let response = Response::builder().status(status);
    let response = response.header("content-type", "text/plain; charset=utf-8");
    response.body(format!("{line}\n")).expect("it is valid")
}
