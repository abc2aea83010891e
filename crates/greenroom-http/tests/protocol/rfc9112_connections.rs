//! RFC 9112, 9: persistence, pipelining, closing.

use greenroom_http::{BodySize, Connection, Context, Event, Limits, Reason, Received};
use http::Response;

use crate::driver::{Driver, Ending, Message, Reply, plain};
use crate::support::{
    GET, GET_10, GET_10_KEEP_ALIVE, assert_refused, response_to, serve, text, with_field,
};

fn hello() -> Reply {
    Reply::text("hello")
}

fn persists(request: &str) -> bool {
    let response = response_to(request, hello);
    let said = response.values("connection") == ["close"];
    assert_eq!(response.keeps_alive, !said, "{response:?}");
    response.keeps_alive
}

fn get(version: &str, connection: &str) -> String {
    format!("GET / HTTP/{version}\r\nHost: a\r\nConnection: {connection}\r\n\r\n")
}

#[test]
fn rfc9112_9_3_version_1_1_persists_unless_told_to_close() {
    assert!(persists(GET));
    assert!(persists(&get("1.1", "keep-alive")));
    assert!(persists(&get("1.1", "x-close, closed")));
    for value in [
        "close",
        "Close",
        "te, CLOSE",
        "close,keep-alive",
        " , close ,",
    ] {
        assert!(!persists(&get("1.1", value)), "{value:?}");
    }
    assert!(!persists(&get("1.1", "te\r\nConnection: close")));
}

#[test]
fn rfc9112_9_3_version_1_0_persists_only_if_asked_to() {
    assert!(!persists(GET_10));
    assert!(!persists(&get("1.0", "close")));
    assert!(!persists(&get("1.0", "keep-alive, close")));
    assert!(persists(GET_10_KEEP_ALIVE));
    let said = response_to(GET_10_KEEP_ALIVE, hello);
    assert_eq!(said.values("connection"), ["keep-alive"]);
}

#[test]
fn rfc9112_9_3_2_pipelined_requests_get_their_responses_in_order() {
    let request = |target: &str| format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n");
    let post = "POST /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc";
    let input = [&request("/1"), post, &request("/3")].concat();
    let mut driver = Driver::new(Limits::default(), |message: &Message| {
        Reply::text(&message.target)
    });
    driver.offer(input.as_bytes());
    let output = text(&driver.finish().output);
    let bodies: Vec<_> = output
        .split("\r\n\r\n")
        .skip(1)
        .map(|body| &body[..2])
        .collect();
    assert_eq!(bodies, ["/1", "/2", "/3"]);
}

#[test]
fn rfc9112_9_3_2_gives_no_request_before_the_response_is_finished() {
    let mut context = Context::default();
    let mut connection = Connection::new();
    let input = format!("{GET}{GET}");
    let first = connection
        .receive(input.as_bytes(), &mut context)
        .expect("a request");
    assert!(matches!(first.event, Event::Head(_)));
    let rest = &input.as_bytes()[first.consumed..];
    assert_eq!(first.consumed, GET.len());

    let mut out = Vec::new();
    assert_waits(&mut connection, rest, &mut context);
    connection.respond(&Response::new(()), BodySize::Exact(2), &context, &mut out);
    assert_waits(&mut connection, rest, &mut context);
    assert_eq!(connection.data(2, &mut out).length, 2);
    assert_waits(&mut connection, rest, &mut context);
    connection
        .finish(None, &mut out)
        .expect("all bytes were sent");

    assert!(connection.is_idle());
    let second = connection.receive(rest, &mut context).expect("a request");
    assert!(matches!(second.event, Event::Head(_)));
    assert!(connection.is_response_due() && !connection.is_idle());
}

fn assert_waits(connection: &mut Connection, rest: &[u8], context: &mut Context) {
    let Received { consumed, event } = connection.receive(rest, context).expect("no rejection");
    assert_eq!(consumed, 0);
    assert!(matches!(event, Event::RespondFirst));
}

#[test]
fn rfc9112_9_3_2_responses_before_a_rejection_stay() {
    let transcript = serve(&format!("{GET}{GET}GET / HTTP/1.1\r\n\r\n{GET}"));
    assert_eq!(transcript.ending, Ending::Refused(Reason::HostMissing));
    assert_eq!(transcript.messages.len(), 2);
    let output = text(&transcript.output);
    assert_eq!(output.matches("HTTP/1.1 200 OK\r\n").count(), 2);
    assert_eq!(output.matches("HTTP/1.1 400 Bad Request\r\n").count(), 1);
    assert!(output.ends_with("missing Host\n"));
}

fn responded_before_its_body(body: &[u8]) -> (Connection, Context, Vec<u8>) {
    let head = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    let mut context = Context::default();
    let mut connection = Connection::new();
    let received = connection.receive(head, &mut context).expect("a request");
    assert_eq!(received.consumed, head.len());
    let mut out = Vec::new();
    connection.respond(&Response::new(()), BodySize::Exact(0), &context, &mut out);
    connection.finish(None, &mut out).expect("an empty body");
    assert!(!connection.is_idle() && !connection.is_received());
    (connection, context, body.to_vec())
}

#[test]
fn rfc9112_9_3_a_response_may_come_before_the_body_ends() {
    let input = [b"1\r\nx\r\n0\r\n\r\n", GET.as_bytes()].concat();
    let (mut connection, mut context, input) = responded_before_its_body(&input);
    let mut rest = &input[..];
    let mut events = Vec::new();
    for _ in 0..3 {
        let Received { consumed, event } = connection
            .receive(rest, &mut context)
            .expect("no rejection");
        rest = &rest[consumed..];
        events.push(event);
    }
    assert!(
        matches!(events[..], [Event::Data(b"x"), Event::End, Event::Head(_)]),
        "{events:?}"
    );
}

#[test]
fn rfc9112_9_3_2_a_request_gets_no_second_response() {
    let (mut connection, mut context, input) = responded_before_its_body(b"broken");
    let rejected = connection
        .receive(&input, &mut context)
        .expect_err("a malformed chunk");
    let mut out = Vec::new();
    let response = plain(rejected.status(), &rejected.to_string());
    connection.refuse(&response, &context, &mut out);
    assert!(out.is_empty());
    assert!(!connection.keeps_alive());
}

#[test]
fn rfc9112_9_6_reads_nothing_after_close() {
    for first in [get("1.1", "close"), GET_10.to_owned()] {
        let transcript = serve(&format!("{first}{GET}"));
        assert_eq!(transcript.ending, Ending::Closed);
        assert_eq!(transcript.messages.len(), 1);
    }
}

#[test]
fn rfc9112_9_6_the_application_may_close() {
    for value in ["close", "Close", "x, close"] {
        let closing = || with_field(hello(), "connection", value);
        let response = response_to(&format!("{GET}{GET}"), closing);
        assert!(!response.keeps_alive);
        assert_eq!(response.values("connection"), ["close"]);
        assert_eq!(response.body, "hello");
    }
}

#[test]
fn rfc9112_9_6_the_application_cannot_keep_alive_what_closes() {
    let asking = || {
        with_field(
            with_field(hello(), "connection", "keep-alive"),
            "keep-alive",
            "timeout=5",
        )
    };
    let response = response_to(GET_10, asking);
    assert_eq!(response.values("connection"), ["close"]);
    assert!(!response.has("keep-alive"));
}

#[test]
fn rfc9112_9_6_a_drained_connection_says_close_with_its_response() {
    let mut context = Context::default();
    let mut connection = Connection::new();
    connection
        .receive(GET.as_bytes(), &mut context)
        .expect("a request");
    connection.close_after_response();
    let mut out = Vec::new();
    connection.respond(&Response::new(()), BodySize::Exact(0), &context, &mut out);
    connection.finish(None, &mut out).expect("an empty body");
    assert!(text(&out).contains("\r\nConnection: close\r\n"));
    assert!(!connection.is_idle());
    assert_waits(&mut connection, GET.as_bytes(), &mut context);
}

#[test]
fn rfc9112_9_6_a_drain_while_the_head_arrives_holds_for_its_response() {
    let mut driver = Driver::new(Limits::default(), |_: &Message| hello());
    driver.offer(&GET.as_bytes()[..10]);
    driver.connection.close_after_response();
    driver.offer(&GET.as_bytes()[10..]);
    driver.offer(GET.as_bytes());
    let transcript = driver.finish();
    assert_eq!(transcript.messages.len(), 1);
    assert_eq!(transcript.ending, Ending::Closed);
    assert!(text(&transcript.output).contains("\r\nConnection: close\r\n"));
}

#[test]
fn rfc9112_9_6_a_rejection_is_framed_for_its_own_request() {
    let after_head = format!(
        "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n{}",
        "GET / HTTP/1.1\r\n\r\n"
    );
    assert!(text(&serve(&after_head).output).ends_with("\r\n\r\nmissing Host\n"));
    let of_head = "\r\nHEAD / HTTP/1.1\r\n\r\n";
    assert!(text(&serve(of_head).output).ends_with("\r\n\r\n"));
    assert_refused(of_head, Reason::HostMissing, 400);
    let too_late = format!("{}HEAD ", "\r\n".repeat(9));
    assert!(text(&serve(&too_late).output).ends_with("malformed request line\n"));
}

#[test]
fn rfc9110_7_8_notes_an_upgrade_to_another_protocol() {
    let asks = |lines: &str, version: &str| {
        let input = format!("GET / HTTP/{version}\r\nHost: a\r\n{lines}\r\n\r\n");
        serve(&input).messages[0].upgrade
    };
    assert!(asks("Connection: Upgrade\r\nUpgrade: websocket", "1.1"));
    assert!(asks(
        "Upgrade: websocket\r\nConnection: keep-alive, upgrade",
        "1.1"
    ));
    assert!(asks(
        "Connection: upgrade\r\nUpgrade: h2c, websocket",
        "1.1"
    ));
    assert!(!asks(
        "Connection: upgrade, http2-settings\r\nUpgrade: h2c",
        "1.1"
    ));
    assert!(!asks("Upgrade: websocket", "1.1"));
    assert!(!asks("Connection: upgrade", "1.1"));
    assert!(!asks("Connection: upgrade\r\nUpgrade: websocket", "1.0"));
    let with_body = "Connection: upgrade\r\nUpgrade: websocket\r\nContent-Length: 1";
    assert!(!asks(with_body, "1.1"));
}
