//! Short forms for what most tests do.

use greenroom_http::{Limits, Reason};

use crate::driver::{Driver, Ending, Message, Reply, Transcript, run};

/// Runs this input through a connection of its own.
pub(crate) fn serve(input: &str) -> Transcript {
    run([input.as_bytes()], Limits::default())
}

/// Returns the one request that this input is.
pub(crate) fn accepted(input: &str) -> Message {
    let mut transcript = serve(input);
    let ending = transcript.ending;
    assert!(
        !matches!(ending, Ending::Refused(_)),
        "{input:?}: {ending:?}"
    );
    assert_eq!(transcript.messages.len(), 1, "{input:?}");
    let message = transcript.messages.remove(0);
    assert!(message.complete, "{input:?}");
    message
}

/// Asserts that the input is refused for this reason, that the client gets a status for it and that
/// the connection closes.
pub(crate) fn assert_refused(input: &str, reason: Reason, status: u16) {
    assert_refused_within(input.as_bytes(), Limits::default(), reason, status);
}

pub(crate) fn assert_refused_within(input: &[u8], limits: Limits, reason: Reason, status: u16) {
    let transcript = run([input], limits);
    let shown = String::from_utf8_lossy(&input[..input.len().min(200)]);
    assert_eq!(transcript.ending, Ending::Refused(reason), "{shown:?}");
    let responses = text(&transcript.output);
    let from = responses.rfind("HTTP/1.1 ").expect("a response");
    let response = &responses[from..];
    assert!(
        response.starts_with(&format!("HTTP/1.1 {status} ")),
        "{response}"
    );
    assert!(response.contains("\r\nConnection: close\r\n"), "{response}");
}

/// Asserts that a request with this field line, between others that are right, is refused.
pub(crate) fn assert_field_refused(line: &str, reason: Reason, status: u16) {
    let input = format!("POST / HTTP/1.1\r\nHost: a\r\n{line}\r\nAccept: */*\r\n\r\n");
    assert_refused(&input, reason, status);
    let complete = serve(&input)
        .messages
        .iter()
        .any(|message| message.complete);
    assert!(!complete, "{line:?} reached the application");
}

/// Sends a request to an application that replies so. Returns the response as its client reads it.
pub(crate) fn response_to(request: &str, reply: impl Fn() -> Reply) -> TextResponse {
    let mut driver = Driver::new(Limits::default(), |_: &Message| reply());
    driver.offer(request.as_bytes());
    let keeps_alive = driver.connection.keeps_alive();
    let output = text(&driver.finish().output);
    let (head, body) = output.split_once("\r\n\r\n").expect("a whole head");
    let mut lines = head.split("\r\n");
    TextResponse {
        status_line: lines.next().unwrap_or_default().to_owned(),
        fields: lines.map(str::to_owned).collect(),
        body: body.to_owned(),
        keeps_alive,
    }
}

#[derive(Debug)]
pub(crate) struct TextResponse {
    pub(crate) status_line: String,
    pub(crate) fields: Vec<String>,
    pub(crate) body: String,
    pub(crate) keeps_alive: bool,
}

impl TextResponse {
    /// Returns the values of a field, whose name is compared without case.
    pub(crate) fn values(&self, name: &str) -> Vec<&str> {
        let fields = self.fields.iter().filter_map(|line| line.split_once(": "));
        fields
            .filter(|(field, _)| field.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
            .collect()
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        !self.values(name).is_empty()
    }
}

pub(crate) fn with_status(mut reply: Reply, status: u16) -> Reply {
    *reply.response.status_mut() = status.try_into().expect("a status");
    reply
}

pub(crate) fn with_field(mut reply: Reply, name: &'static str, value: &str) -> Reply {
    let value = value.parse().expect("a field value");
    reply.response.headers_mut().append(name, value);
    reply
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub(crate) const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
pub(crate) const HEAD: &str = "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n";
pub(crate) const GET_10: &str = "GET / HTTP/1.0\r\n\r\n";
pub(crate) const GET_10_KEEP_ALIVE: &str = "GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n";
