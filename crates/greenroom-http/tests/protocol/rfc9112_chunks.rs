//! RFC 9112, 7: chunked bodies and their trailers.

use greenroom_http::{Limits, Reason};

use crate::driver::run;
use crate::support::{GET, accepted, assert_refused_within, serve};

fn chunked(body: &str) -> String {
    format!("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{body}")
}

fn assert_body_refused(body: &str, reason: Reason) {
    assert_body_refused_with(body, reason, 400);
}

fn assert_body_refused_with(body: &str, reason: Reason, status: u16) {
    let input = chunked(body);
    assert_refused_within(input.as_bytes(), Limits::default(), reason, status);
    assert!(
        !serve(&input).messages[0].complete,
        "{body:?} was taken for complete"
    );
}

#[test]
fn rfc9112_7_1_joins_the_chunks() {
    let body = "4\r\nWiki\r\n7\r\npedia i\r\nB\r\nn \r\nchunks.\r\n0\r\n\r\n";
    assert_eq!(accepted(&chunked(body)).body, b"Wikipedia in \r\nchunks.");
    assert_eq!(accepted(&chunked("0\r\n\r\n")).body, b"");
}

#[test]
fn rfc9112_7_1_reads_sizes_in_either_case_with_leading_zeros() {
    for body in [
        "a\r\n0123456789\r\n0\r\n\r\n",
        "0A\r\n0123456789\r\n000\r\n\r\n",
        "000000000000000A\r\n0123456789\r\n0000000000000000\r\n\r\n",
    ] {
        assert_eq!(accepted(&chunked(body)).body, b"0123456789");
    }
}

#[test]
fn rfc9112_7_1_refuses_loose_sizes() {
    for line in [
        "",
        " 1",
        "1 ",
        "1\t",
        "0x1",
        "+1",
        "-1",
        "g",
        "1g",
        "1,",
        "\u{661}",
        "00000000000000001",
        "10000000000000000",
    ] {
        assert_body_refused(&format!("{line}\r\nx\r\n0\r\n\r\n"), Reason::ChunkSize);
    }
}

#[test]
fn rfc9112_7_1_refuses_bare_line_ends_in_the_framing() {
    assert_body_refused("1\nx\r\n0\r\n\r\n", Reason::ChunkSize);
    assert_body_refused("1\rx\r\n0\r\n\r\n", Reason::BareLineEnd);
    assert_body_refused("1;a\nx\r\n0\r\n\r\n", Reason::ChunkExtension);
    assert_body_refused("1\r\nx\n0\r\n\r\n", Reason::ChunkEnd);
    assert_body_refused("1\r\nx\r0\r\n\r\n", Reason::ChunkEnd);
    assert_body_refused("0\n\n", Reason::ChunkSize);
    assert_body_refused("0\r\n\n", Reason::BareLineEnd);
    assert_body_refused("0\r\n\rx", Reason::BareLineEnd);
}

#[test]
fn rfc9112_7_1_refuses_data_without_its_line_end() {
    assert_body_refused("1\r\nxx\r\n0\r\n\r\n", Reason::ChunkEnd);
    assert_body_refused("5\r\nhello0\r\n\r\n", Reason::ChunkEnd);
    assert_body_refused("2\r\nx\r\n0\r\n\r\n", Reason::ChunkEnd);
}

#[test]
fn rfc9112_7_1_the_largest_size_does_not_overflow() {
    let transcript = serve(&chunked("FFFFFFFFFFFFFFFF\r\nxyz"));
    assert_eq!(transcript.messages[0].body, b"xyz");
    assert!(!transcript.messages[0].complete);
}

#[test]
fn rfc9112_7_1_1_passes_over_extensions() {
    for extension in [
        ";a",
        ";a=b",
        ";a=\"b c;=\"",
        ";a=\"\\\"\"",
        ";a;b=c;d=\"\"",
        ";!#=~",
    ] {
        let body = format!("1{extension}\r\nx\r\n0{extension}\r\n\r\n");
        assert_eq!(accepted(&chunked(&body)).body, b"x");
    }
}

#[test]
fn rfc9112_7_1_1_refuses_loose_extensions() {
    for extension in [
        ";",
        ";;a",
        ";a=",
        "; a",
        ";a =b",
        ";a= b",
        ";a ",
        ";=b",
        ";a=\"b\"c",
        ";a=b=c",
        ";a=\"\0\"",
        ";a=b,",
        ";a=\"\u{7f}\"",
        ";(",
        ";a=\"b\r\n",
    ] {
        let body = format!("1{extension}\r\nx\r\n0\r\n\r\n");
        assert_body_refused(&body, Reason::ChunkExtension);
    }
}

#[test]
fn rfc9112_7_1_1_limits_the_size_line() {
    let limits = Limits {
        chunk_line_bytes_max: 6,
        ..Limits::default()
    };
    let fits = chunked("1;ab\r\nx\r\n0;ab\r\n\r\n");
    let transcript = run([fits.as_bytes()], limits);
    assert!(transcript.messages[0].complete);
    for over in ["1;abc\r\nx\r\n0\r\n\r\n", "1\r\nx\r\n0;abc\r\n\r\n"] {
        assert_refused_within(
            chunked(over).as_bytes(),
            limits,
            Reason::ChunkExtension,
            400,
        );
    }
}

#[test]
fn rfc9112_7_1_1_limits_the_extensions_of_a_whole_body() {
    let chunk = "1;0123456789abcdef\r\nx\r\n";
    let within = format!("{}0\r\n\r\n", chunk.repeat(900));
    assert_eq!(accepted(&chunked(&within)).body.len(), 900);
    assert_body_refused(&chunk.repeat(1_000), Reason::ChunkExtension);
}

#[test]
fn rfc9112_7_1_2_reads_trailers() {
    let message = accepted(&chunked(
        "1\r\nx\r\n0\r\nX-Sum: 1 \r\nx-sum: 2\r\nY:\r\n\r\n",
    ));
    let trailers = message.trailers.expect("trailers");
    let sums: Vec<_> = trailers.get_all("x-sum").iter().collect();
    assert_eq!(sums, ["1", "2"]);
    assert_eq!(trailers["y"], "");
    assert!(!message.fields.contains_key("x-sum"));
    assert!(accepted(&chunked("0\r\n\r\n")).trailers.is_none());
}

#[test]
fn rfc9110_6_5_1_refuses_framing_fields_in_trailers() {
    for name in [
        "Content-Length",
        "transfer-encoding",
        "Host",
        "Connection",
        "Trailer",
        "TE",
        "Upgrade",
        "Keep-Alive",
    ] {
        let body = format!("0\r\nX: y\r\n{name}: 1\r\n\r\n");
        assert_body_refused(&body, Reason::ForbiddenTrailer);
    }
}

#[test]
fn rfc9112_7_1_2_reads_trailers_as_strictly_as_fields() {
    for lines in ["X : y", "X: y\r\n z", " X: y", "X: \0", "X", "X: a\rb"] {
        assert_body_refused(&format!("0\r\n{lines}\r\n\r\n"), Reason::Field);
    }
    assert_body_refused("0\r\nX: y\n\r\n", Reason::BareLineEnd);
    assert_body_refused("0\r\nX: y\r\n\n", Reason::BareLineEnd);
}

#[test]
fn rfc9112_7_1_2_limits_trailers_as_fields_with_431() {
    let many = format!("0\r\n{}\r\n", "X: y\r\n".repeat(101));
    assert_body_refused_with(&many, Reason::TooManyFields, 431);
    let large = format!("0\r\nX: {}\r\n\r\n", "y".repeat(65_536));
    assert_body_refused_with(&large, Reason::HeadTooLarge, 431);
}

#[test]
fn rfc9112_7_1_3_the_next_request_follows_the_body() {
    for body in ["1\r\nx\r\n0\r\n\r\n", "0\r\nX: y\r\n\r\n"] {
        let transcript = serve(&format!("{}{GET}", chunked(body)));
        assert_eq!(transcript.messages.len(), 2);
        assert_eq!(transcript.messages[1].target, "/");
    }
}
