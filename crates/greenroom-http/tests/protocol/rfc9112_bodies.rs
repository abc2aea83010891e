//! RFC 9112, 6: framing of a request's body.

use greenroom_http::{BodyLength, BodySize, Connection, Context, Event, Reason};
use http::Response;

use crate::support::{
    GET, GET_10, GET_10_KEEP_ALIVE, HEAD, accepted, assert_field_refused, assert_refused, serve,
};

fn length_of(fields: &str) -> BodyLength {
    let input = format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
    let received = Connection::new().receive(input.as_bytes(), &mut Context::default());
    match received.expect("a well-formed head").event {
        Event::Head(head) => head.body,
        other => panic!("{other:?}"),
    }
}

#[test]
fn rfc9112_6_says_how_the_body_is_framed() {
    assert_eq!(length_of(""), BodyLength::None);
    assert_eq!(length_of("Content-Length: 0\r\n"), BodyLength::None);
    assert_eq!(length_of("Content-Length: 7\r\n"), BodyLength::Exact(7));
    assert_eq!(
        length_of("Transfer-Encoding: chunked\r\n"),
        BodyLength::Chunked
    );
    assert_eq!(
        length_of("transfer-encoding: CHUNKED\r\n"),
        BodyLength::Chunked
    );
}

#[test]
fn rfc9112_6_1_refuses_content_length_with_transfer_encoding() {
    let both = Reason::ContentLengthWithTransferEncoding;
    for lines in [
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 5",
        "Transfer-Encoding: chunked\r\nX: y\r\nContent-Length: 0",
        "Content-Length: 0\r\nTransfer-Encoding: identity",
    ] {
        assert_field_refused(lines, both, 400);
    }
}

#[test]
fn rfc9112_6_1_refuses_all_but_a_final_chunked() {
    for value in [
        "",
        "identity",
        "gzip",
        "chunked, gzip",
        "chunked, identity",
        "chunked, chunked",
        "chunked,",
        ",chunked",
        ", chunked",
        ",, chunked",
        "gzip,, chunked",
        ", gzip, chunked",
        ",",
        "chunked;q=1",
        "xchunked",
        "chunkedx",
        "\"chunked\"",
        "chun ked",
        "chunked\u{e9}",
    ] {
        let line = format!("Transfer-Encoding: {value}");
        assert_field_refused(&line, Reason::TransferEncoding, 400);
    }
}

#[test]
fn rfc9112_6_1_refuses_unknown_codings_before_chunked_with_501() {
    for value in [
        "gzip, chunked",
        "gzip,chunked",
        "x, y, chunked",
        "identity, chunked",
    ] {
        let line = format!("Transfer-Encoding: {value}");
        assert_field_refused(&line, Reason::TransferCodingUnknown, 501);
    }
}

#[test]
fn rfc9112_6_1_refuses_a_repeated_transfer_encoding() {
    for lines in [
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
    ] {
        assert_field_refused(lines, Reason::TransferEncoding, 400);
    }
}

#[test]
fn rfc9112_6_1_refuses_transfer_encoding_in_1_0() {
    let input = "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    assert_refused(input, Reason::TransferEncoding, 400);
}

#[test]
fn rfc9112_6_2_refuses_a_malformed_content_length() {
    for value in [
        "",
        "+5",
        "-5",
        "5 5",
        "5,",
        "5, 5",
        "5,5",
        "0x5",
        "5.0",
        "five",
        "1e3",
        "5;",
        "18446744073709551616",
        "99999999999999999999999",
        "\u{ff15}",
    ] {
        let line = format!("Content-Length: {value}");
        assert_field_refused(&line, Reason::ContentLength, 400);
    }
}

#[test]
fn rfc9112_6_2_reads_every_decimal_number_of_64_bits() {
    let most = "Content-Length: 18446744073709551615\r\n";
    assert_eq!(length_of(most), BodyLength::Exact(u64::MAX));
    assert_eq!(length_of("Content-Length: 0005\r\n"), BodyLength::Exact(5));
}

#[test]
fn rfc9112_6_3_refuses_a_repeated_content_length() {
    for lines in [
        "Content-Length: 5\r\nContent-Length: 5",
        "Content-Length: 5\r\nContent-Length: 6",
        "Content-Length: 0\r\ncontent-length: 0",
    ] {
        assert_field_refused(lines, Reason::ContentLengthRepeated, 400);
    }
}

#[test]
fn rfc9112_6_3_a_request_without_framing_has_no_body() {
    for method in ["GET", "POST", "PUT", "DELETE"] {
        let input = format!("{method} / HTTP/1.1\r\nHost: a\r\n\r\n{GET}");
        let transcript = serve(&input);
        assert_eq!(transcript.messages.len(), 2);
        assert!(transcript.messages[0].body.is_empty());
    }
}

#[test]
fn rfc9112_6_3_any_method_may_have_a_body() {
    for method in ["GET", "HEAD", "DELETE", "OPTIONS"] {
        let input = format!("{method} /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc");
        assert_eq!(accepted(&input).body, b"abc");
    }
}

#[test]
fn rfc9112_6_3_the_body_ends_where_its_length_says() {
    let transcript = serve(&format!(
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello{GET}"
    ));
    assert_eq!(transcript.messages.len(), 2);
    assert_eq!(transcript.messages[0].body, b"hello");
    assert_eq!(transcript.messages[1].target, "/");
}

#[test]
fn rfc9112_6_3_says_when_the_end_of_the_connection_is_the_end_of_the_body() {
    let is_ended_by_close = |request: &str, size: BodySize| {
        let (mut context, mut connection) = (Context::default(), Connection::new());
        connection
            .receive(request.as_bytes(), &mut context)
            .expect("a request");
        assert!(!connection.is_responding() && !connection.is_ended_by_close());
        connection.respond(&Response::new(()), size, &context, &mut Vec::new());
        assert!(connection.is_responding());
        connection.is_ended_by_close()
    };
    assert!(is_ended_by_close(GET_10, BodySize::Unknown));
    assert!(is_ended_by_close(GET_10_KEEP_ALIVE, BodySize::Unknown));
    assert!(!is_ended_by_close(GET_10, BodySize::Exact(5)));
    assert!(!is_ended_by_close(GET, BodySize::Unknown));
    assert!(!is_ended_by_close(HEAD, BodySize::Unknown));
}

#[test]
fn rfc9112_8_a_body_cut_short_never_becomes_complete() {
    for input in [
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhell",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n",
    ] {
        let transcript = serve(input);
        assert_eq!(transcript.messages.len(), 1);
        assert!(!transcript.messages[0].complete);
        assert!(transcript.output.is_empty());
    }
}
