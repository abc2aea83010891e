//! RFC 9112, 2 and 3: the message and its request line.

use greenroom_http::{Limits, Reason};
use http::Version;

use crate::driver::{Ending, run};
use crate::support::{GET, accepted, assert_refused, assert_refused_within, serve};

#[test]
fn rfc9112_2_1_reads_a_request() {
    let message = accepted("POST /x?y HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello");
    assert_eq!(message.method, "POST");
    assert_eq!(message.target, "/x?y");
    assert_eq!(message.version, Version::HTTP_11);
    assert_eq!(message.fields["content-length"], "5");
    assert_eq!(message.body, b"hello");
}

#[test]
fn rfc9112_2_2_refuses_bare_line_feeds() {
    for input in [
        "GET / HTTP/1.1\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n\n",
        "GET / HTTP/1.1\nHost: a\n\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX:\n\r\n",
        "\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
    ] {
        assert_refused(input, Reason::BareLineEnd, 400);
    }
}

#[test]
fn rfc9112_2_2_refuses_bare_carriage_returns() {
    for (input, reason) in [
        ("GET / HTTP/1.1\rHost: a\r\n\r\n", Reason::BareLineEnd),
        ("GET / HTTP/1.1\r\nHost: a\r\n\rX", Reason::BareLineEnd),
        ("\rGET / HTTP/1.1\r\nHost: a\r\n\r\n", Reason::BareLineEnd),
        ("GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n", Reason::Field),
        ("GET / HTTP/1.1\r\nHost: a\r\r\n\r\n", Reason::Field),
        ("GET / HTTP/1.1\r\nHost: a\r\nX\r: b\r\n\r\n", Reason::Field),
    ] {
        assert_refused(input, reason, 400);
    }
}

#[test]
fn rfc9112_2_2_passes_over_a_few_leading_empty_lines() {
    assert_eq!(accepted(&format!("\r\n{GET}")).target, "/");
    assert_eq!(accepted(&format!("{}{GET}", "\r\n".repeat(8))).target, "/");
    let after_another = serve(&format!("{GET}\r\n{GET}"));
    assert_eq!(after_another.messages.len(), 2);
}

#[test]
fn rfc9112_2_2_refuses_empty_lines_without_end() {
    assert_refused(&"\r\n".repeat(9), Reason::RequestLine, 400);
    assert_refused(
        &format!("{GET}{}", "\r\n".repeat(9)),
        Reason::RequestLine,
        400,
    );
}

#[test]
fn rfc9112_2_2_refuses_whitespace_before_the_first_field() {
    assert_refused("GET / HTTP/1.1\r\n Host: a\r\n\r\n", Reason::Field, 400);
    assert_refused(
        "GET / HTTP/1.1\r\n\tX: b\r\nHost: a\r\n\r\n",
        Reason::Field,
        400,
    );
}

#[test]
fn rfc9112_2_3_reads_version_1_0() {
    let message = accepted("GET / HTTP/1.0\r\n\r\n");
    assert_eq!(message.version, Version::HTTP_10);
}

#[test]
fn rfc9112_2_3_refuses_other_versions_with_505() {
    for version in ["0.9", "2.0", "2.1", "3.0", "9.9"] {
        let input = format!("GET / HTTP/{version}\r\nHost: a\r\n\r\n");
        assert_refused(&input, Reason::Version, 505);
        assert_refused(&format!("\r\n{input}"), Reason::Version, 505);
    }
}

#[test]
fn rfc9110_2_5_reads_a_later_minor_version_as_1_1() {
    for version in ["1.2", "1.3", "1.9"] {
        let post =
            format!("POST /x HTTP/{version}\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
        let transcript = serve(&format!("\r\n{post}2\r\nhi\r\n0\r\n\r\n{GET}"));
        assert_eq!(transcript.messages.len(), 2, "{version}");
        let message = &transcript.messages[0];
        assert_eq!(
            (message.version, &message.body[..]),
            (Version::HTTP_11, &b"hi"[..])
        );
        assert!(transcript.output.starts_with(b"HTTP/1.1 200 OK\r\n"));
        assert_refused(
            &format!("GET / HTTP/{version}\r\n\r\n"),
            Reason::HostMissing,
            400,
        );
    }
    let long = format!("GET / HTTP/1.2{}", "\r\nHost: a\r\n\r\n");
    assert_eq!(
        run(long.as_bytes().chunks(1), Limits::default())
            .messages
            .len(),
        1
    );
}

#[test]
fn rfc9110_2_5_a_later_minor_version_cannot_leave_http() {
    let upgrade = "Connection: upgrade\r\nUpgrade: websocket\r\n";
    for (line, fields) in [("GET /", upgrade), ("CONNECT a:80", "")] {
        let input = format!("{line} HTTP/1.2\r\nHost: a\r\n{fields}\r\n");
        assert_refused(&input, Reason::Version, 505);
    }
}

#[test]
fn rfc9112_2_3_refuses_what_is_no_version_with_400() {
    for version in [
        "http/1.1",
        "HTTP/11",
        "HTTP/1",
        "HTTP/a.b",
        "HTTP1.1",
        "x HTTP/2.0",
        "HTTP/+1.1",
    ] {
        let input = format!("GET / {version}\r\nHost: a\r\n\r\n");
        assert_refused(&input, Reason::RequestLine, 400);
    }
}

#[test]
fn rfc9112_3_refuses_malformed_request_lines() {
    for line in [
        "GET",
        "GET /",
        "GET  / HTTP/1.1",
        "GET /  HTTP/1.1",
        "GET\t/\tHTTP/1.1",
        " GET / HTTP/1.1",
        "GET / a HTTP/1.1",
        "G(T / HTTP/1.1",
        "GET /\0 HTTP/1.1",
        "/ HTTP/1.1",
    ] {
        let input = format!("{line}\r\nHost: a\r\n\r\n");
        assert_refused(&input, Reason::RequestLine, 400);
    }
}

#[test]
fn rfc9112_3_refuses_bytes_after_the_version() {
    for line in [
        "GET / HTTP/1.1 ",
        "GET / HTTP/1.1x",
        "GET / HTTP/1.11",
        "GET / HTTP/1.2 ",
        "GET / HTTP/1.2x",
        "GET / HTTP/1.22",
    ] {
        let input = format!("{line}\r\nHost: a\r\n\r\n");
        assert_refused(&input, Reason::BareLineEnd, 400);
    }
}

#[test]
fn rfc9112_3_1_takes_any_token_as_method() {
    for method in ["M-SEARCH", "get", "BASELINE-CONTROL", "!#$%&'*+-.^_`|~0"] {
        let message = accepted(&format!("{method} / HTTP/1.1\r\nHost: a\r\n\r\n"));
        assert_eq!(message.method.as_str(), method);
    }
}

#[test]
fn rfc9112_3_refuses_a_method_longer_than_any_with_501() {
    let longest = "M".repeat(32);
    accepted(&format!("{longest} / HTTP/1.1\r\nHost: a\r\n\r\n"));
    let input = format!("{longest}M / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_refused(&input, Reason::MethodTooLong, 501);
    assert_refused(&"M".repeat(33), Reason::MethodTooLong, 501);
}

#[test]
fn rfc9112_3_refuses_a_target_over_the_limit_with_414() {
    let limits = Limits {
        target_bytes_max: 10,
        ..Limits::default()
    };
    let request = |target: &str| format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n");
    let fits = run([request("/123456789").as_bytes()], limits);
    assert_eq!(fits.messages.len(), 1);
    let over = request("/1234567890");
    assert_refused_within(over.as_bytes(), limits, Reason::TargetTooLong, 414);
    let unfinished = b"GET /1234567890";
    assert_refused_within(unfinished, limits, Reason::TargetTooLong, 414);
}

#[test]
fn rfc9112_3_limits_the_target_to_8_kib_by_default() {
    let request =
        |bytes: usize| format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(bytes - 1));
    assert_eq!(accepted(&request(8_192)).target.len(), 8_192);
    assert_refused(&request(8_193), Reason::TargetTooLong, 414);
}

#[test]
fn rfc9112_3_a_long_target_is_414_whatever_else_is_wrong() {
    let limits = Limits {
        target_bytes_max: 10,
        head_bytes_max: 64,
        ..Limits::default()
    };
    let target = "/".repeat(11);
    for rest in [
        " HTTP/2.0\r\n",
        " HTTP/1.1\r\nHost : a\r\n",
        &"x".repeat(100),
    ] {
        let input = format!("GET {target}{rest}");
        assert_refused_within(input.as_bytes(), limits, Reason::TargetTooLong, 414);
    }
}

#[test]
fn rfc9113_3_4_hands_over_the_preface_of_http_2() {
    let preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    assert_eq!(serve(preface).ending, Ending::Http2);
    assert_eq!(serve(&format!("{preface}frames")).ending, Ending::Http2);
    let pieces = preface.as_bytes().chunks(1);
    let dribbled = run(std::iter::once(&b""[..]).chain(pieces), Limits::default());
    assert_eq!(dribbled.ending, Ending::Http2);
    assert!(dribbled.messages.is_empty() && dribbled.output.is_empty());
}

#[test]
fn rfc9113_3_4_waits_while_the_preface_may_still_come() {
    let transcript = serve("PRI * HTTP/2.0\r\n\r\nSM\r\n\r");
    assert_eq!(transcript.ending, Ending::Waiting);
    assert_eq!(transcript.left.len(), 23);
    assert_eq!(accepted("P / HTTP/1.1\r\nHost: a\r\n\r\n").method, "P");
}

#[test]
fn rfc9113_3_4_refuses_what_is_almost_the_preface() {
    assert_refused("PRI * HTTP/2.0\r\n\r\nSM\r\n\rX", Reason::Version, 505);
    assert_refused("\r\nPRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Reason::Version, 505);
    assert_refused("PRI * HTTP/1.1\r\nHost: a\r\n\r\n", Reason::Target, 400);
    let later = format!("{GET}PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    assert_refused(&later, Reason::Version, 505);
}
