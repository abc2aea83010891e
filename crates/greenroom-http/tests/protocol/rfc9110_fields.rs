//! RFC 9110, 6.6, 8.6 and 10.1: fields that the server writes or obeys.

use greenroom_http::{CONTINUE, FieldNames, Reason};

use crate::driver::Reply;
use crate::support::{GET, accepted, assert_field_refused, response_to, serve, with_field};

#[test]
fn rfc9110_6_6_1_every_response_is_dated_once() {
    let dated = response_to(GET, || Reply::text("x"));
    assert_eq!(dated.values("date"), ["Thu, 01 Jan 1970 00:00:00 GMT"]);
    let own = "Sun, 06 Nov 1994 08:49:37 GMT";
    let kept = response_to(GET, || with_field(Reply::text("x"), "date", own));
    assert_eq!(kept.values("date"), [own]);
}

#[test]
fn rfc9110_5_1_names_are_sent_as_the_application_spells_them() {
    let reply = |names: Option<FieldNames>| {
        let reply = with_field(Reply::text("x"), "etag", "\"1\"");
        let mut reply = with_field(reply, "x-other", "a");
        names.map(|names| reply.response.extensions_mut().insert(names));
        reply
    };
    let as_spelled = response_to(GET, || {
        reply(Some(FieldNames::new(["Content-length", "ETag"])))
    });
    for field in ["ETag: \"1\"", "x-other: a", "Content-Length: 1"] {
        assert!(
            as_spelled.fields.iter().any(|line| line == field),
            "{field}"
        );
    }
    let as_usual = response_to(GET, || reply(None));
    assert!(as_usual.fields.iter().any(|line| line == "etag: \"1\""));
    // A name that is not the field's own is no name for it.
    let injected = FieldNames::new([&b"ETag\r\nX-B"[..], b"x-other\r\n"]);
    let injected = response_to(GET, || reply(Some(injected.clone())));
    assert_eq!(injected.fields, as_usual.fields);
}

#[test]
fn rfc9110_5_5_what_the_application_puts_into_fields_stays_one_field() {
    let lines = "x\r\nSet-Cookie: a=b\r\n\r\n<script>";
    assert!(http::HeaderValue::from_str(lines).is_err());
    assert!(http::HeaderName::from_bytes(b"x\r\ny").is_err());
    let response = response_to(GET, || with_field(Reply::text(""), "x-note", "\u{e9} a:b"));
    assert_eq!(response.values("x-note"), ["\u{e9} a:b"]);
    assert_eq!(response.fields.len(), 3);
}

#[test]
fn rfc9110_7_6_1_hop_by_hop_fields_of_the_application_are_not_sent() {
    let reply = || {
        let reply = with_field(Reply::text("x"), "transfer-encoding", "chunked");
        with_field(
            with_field(reply, "connection", "x-private"),
            "keep-alive",
            "timeout=9",
        )
    };
    let response = response_to(GET, reply);
    assert!(
        !response.has("transfer-encoding")
            && !response.has("connection")
            && !response.has("keep-alive")
    );
    assert_eq!(response.values("content-length"), ["1"]);
}

#[test]
fn rfc9110_7_8_upgrade_of_the_application_is_named_in_connection() {
    let response = response_to(GET, || with_field(Reply::text(""), "upgrade", "websocket"));
    assert_eq!(response.values("upgrade"), ["websocket"]);
    assert_eq!(response.values("connection"), ["upgrade"]);
}

#[test]
fn rfc9110_10_1_1_notes_that_the_client_waits_for_100_continue() {
    let request = |version: &str, expect: &str| {
        format!("PUT / HTTP/{version}\r\nHost: a\r\nContent-Length: 1\r\n{expect}\r\nx")
    };
    assert!(accepted(&request("1.1", "Expect: 100-continue\r\n")).expects_continue);
    assert!(accepted(&request("1.1", "expect: 100-Continue\r\n")).expects_continue);
    assert!(!accepted(&request("1.1", "")).expects_continue);
    let old = serve(&request("1.0", "Expect: 100-continue\r\n"));
    assert!(!old.messages[0].expects_continue);
    assert_eq!(CONTINUE, b"HTTP/1.1 100 Continue\r\n\r\n");
}

#[test]
fn rfc9110_10_1_1_refuses_other_expectations_with_417() {
    for value in [
        "",
        "200-ok",
        "100-continue, x",
        "100-continue;a=b",
        "100-continued",
    ] {
        assert_field_refused(&format!("Expect: {value}"), Reason::Expectation, 417);
    }
}

#[test]
fn rfc9110_10_1_4_trailers_are_sent_to_who_takes_them() {
    let reply = || Reply {
        trailers: Some(
            [("x-sum", "1"), ("content-length", "9")]
                .into_iter()
                .map(|(name, value)| {
                    (
                        name.parse().expect("a name"),
                        value.parse().expect("a value"),
                    )
                })
                .collect(),
        ),
        ..Reply::stream(&["x"])
    };
    let takes = "GET / HTTP/1.1\r\nHost: a\r\nTE: gzip, trailers\r\nConnection: TE\r\n\r\n";
    assert_eq!(
        response_to(takes, reply).body,
        "1\r\nx\r\n0\r\nx-sum: 1\r\n\r\n"
    );
    assert_eq!(response_to(GET, reply).body, "1\r\nx\r\n0\r\n\r\n");
}
