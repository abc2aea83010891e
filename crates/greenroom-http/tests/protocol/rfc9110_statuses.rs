//! RFC 9110, 15, and RFC 9112, 4, 6 and 7: framing of responses.

use greenroom_http::{BodySize, Connection, Context, Limits, ReasonPhrase, Truncated};
use http::Response;

use crate::driver::{Reply, plain};
use crate::support::{
    GET, GET_10, GET_10_KEEP_ALIVE, TextResponse, response_to, text, with_field, with_status,
};

fn sized(status: u16) -> TextResponse {
    response_to(GET, || with_status(Reply::text("hello"), status))
}

#[test]
fn rfc9112_4_the_status_line_has_the_registered_reason_or_none() {
    assert_eq!(sized(200).status_line, "HTTP/1.1 200 OK");
    assert_eq!(sized(404).status_line, "HTTP/1.1 404 Not Found");
    assert_eq!(sized(599).status_line, "HTTP/1.1 599 ");
    assert_eq!(
        response_to(GET_10, || Reply::text("")).status_line,
        "HTTP/1.1 200 OK"
    );
}

#[test]
fn rfc9112_4_the_application_may_give_the_reason() {
    let with_reason = |status: u16, phrase: &'static [u8]| {
        let reply = || {
            let mut reply = with_status(Reply::text(""), status);
            let phrase = ReasonPhrase::new(phrase.into()).expect("a reason phrase");
            reply.response.extensions_mut().insert(phrase);
            reply
        };
        response_to(GET, reply).status_line
    };
    assert_eq!(with_reason(200, b"Awesome"), "HTTP/1.1 200 Awesome");
    assert_eq!(
        with_reason(404, b"I looked\teverywhere"),
        "HTTP/1.1 404 I looked\teverywhere"
    );
    assert_eq!(
        with_reason(599, "H\u{e9}".as_bytes()),
        "HTTP/1.1 599 H\u{e9}"
    );
    assert_eq!(with_reason(404, b""), "HTTP/1.1 404 ");
    assert_eq!(
        with_reason(103, b"Early"),
        "HTTP/1.1 500 Internal Server Error"
    );
}

#[test]
fn rfc9112_4_a_reason_ends_no_line() {
    for phrase in [&b"a\r\nX: b"[..], b"\n", b"\r", b"\0", b"\x7f", b"\x1b"] {
        assert_eq!(ReasonPhrase::new(phrase.into()), None);
    }
}

#[test]
fn rfc9112_6_2_a_body_of_known_size_has_its_length() {
    let response = sized(200);
    assert_eq!(response.values("content-length"), ["5"]);
    assert!(!response.has("transfer-encoding"));
    assert_eq!(response.body, "hello");
}

#[test]
fn rfc9112_6_2_an_empty_body_says_so() {
    for status in [200, 201, 404] {
        let response = response_to(GET, || with_status(Reply::text(""), status));
        assert_eq!(response.values("content-length"), ["0"]);
        assert_eq!(response.body, "");
    }
}

#[test]
fn rfc9112_6_1_a_body_of_unknown_size_is_chunked() {
    let response = response_to(GET, || Reply::stream(&["hello", "", "0123456789abcdef!"]));
    assert_eq!(response.values("transfer-encoding"), ["chunked"]);
    assert!(!response.has("content-length"));
    assert_eq!(
        response.body,
        "5\r\nhello\r\n11\r\n0123456789abcdef!\r\n0\r\n\r\n"
    );
    assert!(response.keeps_alive);
}

/// Returns the bytes written for each chunk, each as its own write.
fn writes(request: &str, said: Option<&str>, parts: &[&str]) -> Vec<String> {
    let mut context = Context::default();
    let mut connection = Connection::new();
    connection
        .receive(request.as_bytes(), &mut context)
        .expect("a request");
    let mut response = Response::new(());
    if let Some(length) = said {
        let length = length.parse().expect("a field value");
        response.headers_mut().insert("content-length", length);
    }
    connection.respond(&response, BodySize::Unknown, &context, &mut Vec::new());
    let write = |part: &&str| {
        let mut out = Vec::new();
        let framed = connection.data(part.len(), &mut out);
        out.extend_from_slice(&part.as_bytes()[..framed.length]);
        out.extend_from_slice(framed.end);
        text(&out)
    };
    parts.iter().map(write).collect()
}

#[test]
fn rfc9112_7_1_each_chunk_ends_in_the_write_that_carries_it() {
    let long = "x".repeat(300);
    assert_eq!(
        writes(GET, None, &["hello", "", &long]),
        [
            "5\r\nhello\r\n".to_owned(),
            String::new(),
            format!("12c\r\n{long}\r\n")
        ]
    );
}

#[test]
fn rfc9112_6_3_only_chunks_have_an_end() {
    assert_eq!(writes(GET, Some("4"), &["hel", "lo"]), ["hel", "l"]);
    assert_eq!(writes(GET_10, None, &["hel", "lo"]), ["hel", "lo"]);
    assert_eq!(writes(crate::support::HEAD, None, &["hel"]), [""]);
}

#[test]
fn rfc9112_6_1_an_empty_body_of_unknown_size_is_one_last_chunk() {
    assert_eq!(response_to(GET, || Reply::stream(&[])).body, "0\r\n\r\n");
    assert_eq!(response_to(GET, || Reply::stream(&[""])).body, "0\r\n\r\n");
}

#[test]
fn rfc9112_6_3_a_body_of_unknown_size_ends_with_the_connection_in_1_0() {
    for request in [GET_10, GET_10_KEEP_ALIVE] {
        let response = response_to(request, || Reply::stream(&["hel", "lo"]));
        assert!(!response.has("transfer-encoding") && !response.has("content-length"));
        assert_eq!(response.values("connection"), ["close"]);
        assert_eq!(response.body, "hello");
        assert!(!response.keeps_alive);
    }
}

#[test]
fn rfc9110_8_6_the_length_follows_from_the_body_not_from_the_application() {
    for said in ["3", "9", "five", "5, 5"] {
        let response = response_to(GET, || {
            with_field(Reply::text("hello"), "content-length", said)
        });
        assert_eq!(response.values("content-length"), ["5"]);
        assert_eq!(response.body, "hello");
    }
}

#[test]
fn rfc9110_8_6_a_declared_length_of_a_streamed_body_is_taken() {
    let response = response_to(GET, || {
        with_field(Reply::stream(&["hel", "lo"]), "content-length", "5")
    });
    assert_eq!(response.values("content-length"), ["5"]);
    assert!(!response.has("transfer-encoding"));
    assert_eq!(response.body, "hello");
}

#[test]
fn rfc9110_8_6_a_malformed_declared_length_is_not_sent() {
    for said in ["five", "-1", "5, 5", ""] {
        let response = response_to(GET, || {
            with_field(Reply::stream(&["hello"]), "content-length", said)
        });
        assert!(!response.has("content-length"));
        assert_eq!(response.body, "5\r\nhello\r\n0\r\n\r\n");
    }
}

#[test]
fn rfc9110_8_6_more_than_the_declared_length_is_not_sent() {
    let long = response_to(GET, || {
        with_field(Reply::stream(&["hel", "lo", "!"]), "content-length", "4")
    });
    assert_eq!(long.values("content-length"), ["4"]);
    assert_eq!(long.body, "hell");
    assert!(long.keeps_alive);
}

#[test]
fn rfc9110_8_6_less_than_the_declared_length_closes() {
    let short = response_to(GET, || {
        with_field(Reply::stream(&["hel"]), "content-length", "5")
    });
    assert_eq!(short.body, "hel");
    assert!(!short.keeps_alive);

    let mut context = Context::default();
    let mut connection = Connection::new();
    connection
        .receive(GET.as_bytes(), &mut context)
        .expect("a request");
    let mut out = Vec::new();
    connection.respond(&Response::new(()), BodySize::Exact(5), &context, &mut out);
    assert_eq!(connection.data(3, &mut out).length, 3);
    assert_eq!(
        connection.finish(None, &mut out),
        Err(Truncated { missing: 2 })
    );
}

#[test]
fn rfc9110_15_2_an_informational_status_is_no_response() {
    for status in [100, 101, 103, 199] {
        let response = sized(status);
        assert_eq!(response.status_line, "HTTP/1.1 500 Internal Server Error");
        assert_eq!(response.values("content-length"), ["5"]);
        assert!(!response.keeps_alive);
    }
}

#[test]
fn rfc9110_15_3_5_a_204_has_neither_content_nor_length() {
    for reply in [
        || with_status(Reply::text("hello"), 204),
        || with_status(Reply::stream(&["hello"]), 204),
        || with_field(with_status(Reply::text(""), 204), "content-length", "0"),
    ] {
        let response = response_to(GET, reply);
        assert!(!response.has("content-length") && !response.has("transfer-encoding"));
        assert_eq!(response.body, "");
        assert!(response.keeps_alive);
    }
}

#[test]
fn rfc9110_15_3_6_a_205_has_no_content() {
    for reply in [
        || with_status(Reply::text("hello"), 205),
        || with_status(Reply::stream(&["hello"]), 205),
    ] {
        let response = response_to(GET, reply);
        assert_eq!(response.values("content-length"), ["0"]);
        assert_eq!(response.body, "");
    }
}

#[test]
fn rfc9110_15_4_5_a_304_has_no_content_but_may_say_its_length() {
    let said = response_to(GET, || {
        with_field(with_status(Reply::text(""), 304), "content-length", "42")
    });
    assert_eq!(said.values("content-length"), ["42"]);
    let unsaid = sized(304);
    assert!(!unsaid.has("content-length") && !unsaid.has("transfer-encoding"));
    for response in [said, unsaid] {
        assert_eq!(response.body, "");
        assert!(response.keeps_alive);
    }
}

#[test]
fn rfc9110_8_6_a_304_does_not_pass_its_own_lack_of_content_for_a_length() {
    for request in [GET, GET_10_KEEP_ALIVE, crate::support::HEAD] {
        for (body, said) in [("", "0"), ("hello", "5")] {
            let made_up = response_to(request, || {
                with_field(with_status(Reply::text(body), 304), "content-length", said)
            });
            assert!(!made_up.has("content-length"), "{made_up:?}");
            assert_eq!(made_up.body, "");
        }
        let streamed = response_to(request, || {
            with_field(with_status(Reply::stream(&[]), 304), "content-length", "42")
        });
        assert_eq!(streamed.values("content-length"), ["42"]);
    }
}

#[test]
fn rfc9110_15_3_5_what_is_not_sent_need_not_be_produced() {
    let sends = |request: &str, status: u16, size: BodySize| {
        let mut context = Context::default();
        let mut connection = Connection::new();
        connection
            .receive(request.as_bytes(), &mut context)
            .expect("a request");
        let mut response = Response::new(());
        *response.status_mut() = status.try_into().expect("a status");
        connection.respond(&response, size, &context, &mut Vec::new());
        connection.sends_body()
    };
    assert!(sends(GET, 200, BodySize::Unknown) && sends(GET, 200, BodySize::Exact(1)));
    assert!(sends(GET_10, 200, BodySize::Unknown));
    for (status, size) in [
        (204, BodySize::Unknown),
        (205, BodySize::Unknown),
        (304, BodySize::Exact(1)),
        (200, BodySize::Exact(0)),
    ] {
        assert!(!sends(GET, status, size), "{status}");
    }
    assert!(!sends(crate::support::HEAD, 200, BodySize::Unknown));
}

#[test]
fn rfc9110_15_6_the_server_responds_for_itself_and_closes() {
    let mut context = Context::new(Limits::default(), std::time::UNIX_EPOCH);
    let mut connection = Connection::new();
    connection
        .receive(GET.as_bytes(), &mut context)
        .expect("a request");
    let mut out = Vec::new();
    let status = http::StatusCode::REQUEST_TIMEOUT;
    connection.dismiss(&plain(status, "too slow"), &context, &mut out);
    let wanted = "HTTP/1.1 408 Request Timeout\r\ncontent-type: text/plain; charset=utf-8\r\n\
        Content-Length: 9\r\nConnection: close\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n\r\n\
        too slow\n";
    assert_eq!(text(&out), wanted);
    assert!(!connection.keeps_alive() && !connection.is_response_due());
}
