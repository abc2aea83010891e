//! RFC 9112, 3.2: the request target and `Host`.

use greenroom_http::{Limits, Reason};

use crate::driver::{Ending, Message};
use crate::support::{accepted, assert_refused, assert_refused_within, serve};

fn request(target: &str, host: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n")
}

#[test]
fn rfc9112_3_2_refuses_a_missing_host_in_1_1_only() {
    assert_refused("GET / HTTP/1.1\r\n\r\n", Reason::HostMissing, 400);
    assert_refused("GET http://a/ HTTP/1.1\r\n\r\n", Reason::HostMissing, 400);
    accepted("GET / HTTP/1.0\r\n\r\n");
}

#[test]
fn rfc9112_3_2_refuses_a_repeated_host() {
    for version in ["1.0", "1.1"] {
        let equal = format!("GET / HTTP/{version}\r\nHost: a\r\nHost: a\r\n\r\n");
        assert_refused(&equal, Reason::HostRepeated, 400);
    }
    let unequal = "GET / HTTP/1.1\r\nHost: a\r\nX: y\r\nhOST: b\r\n\r\n";
    assert_refused(unequal, Reason::HostRepeated, 400);
}

/// A `Host` that was found good is not checked again.
#[test]
fn rfc9112_3_2_checks_each_host_of_a_connection_as_if_it_were_the_first() {
    let hosts = |input: &str| {
        let transcript = serve(input);
        let host = |message: &Message| message.fields["host"].as_bytes().to_vec();
        let hosts: Vec<_> = transcript.messages.iter().map(host).collect();
        (hosts.concat(), transcript.ending)
    };
    let good = ["a", "a", "b:80", "A", "a"].map(|host| request("/", host));
    assert_eq!(hosts(&good.concat()), (b"aab:80Aa".into(), Ending::Waiting));

    let refused = |reason| (b"aa".into(), Ending::Refused(reason));
    let twice = [request("/", "a"), request("/", "a")].concat();
    let bad = request("/", "a,b");
    assert_eq!(hosts(&format!("{twice}{bad}")), refused(Reason::Host));
    for repeated in [
        "Host: a\r\nHost: a",
        "Host: a\r\nHost: b",
        "Host: b\r\nHost: a",
    ] {
        let repeated = format!("{twice}GET / HTTP/1.1\r\n{repeated}\r\n\r\n");
        assert_eq!(hosts(&repeated), refused(Reason::HostRepeated));
    }
    let disagrees = format!("{twice}{}", request("http://b/", "a"));
    assert_eq!(hosts(&disagrees), refused(Reason::HostDisagrees));
}

#[test]
fn rfc9112_3_2_refuses_a_malformed_host() {
    for host in [
        "",
        ":80",
        "a b",
        "a,b c",
        "a/b",
        "user@a",
        "a:b",
        "a:123456",
        "[::1",
        "[::1]x",
        "::1",
        "[1.2.3.4]",
        "a?b",
        "a#b",
        "a\\b",
        "h\u{f6}st",
    ] {
        assert_refused(&request("/", host), Reason::Host, 400);
    }
}

#[test]
fn rfc9112_3_2_takes_hosts_of_every_form() {
    for host in [
        "a",
        "A.example",
        "a:80",
        "a:",
        "127.0.0.1",
        "127.0.0.1:8080",
        "[::1]",
        "[::1]:80",
        "x_y.local",
    ] {
        assert_eq!(accepted(&request("/", host)).fields["host"], host);
    }
}

#[test]
fn rfc9112_3_2_1_origin_form() {
    for target in [
        "/",
        "/a/b?c=d&e",
        "//a/b",
        "/a//b",
        "/%00",
        "/a:80",
        "/?",
        "/a?b?c",
        "/http://b/",
    ] {
        assert_eq!(accepted(&request(target, "a")).target, target);
    }
}

#[test]
fn rfc9112_3_2_refuses_targets_of_no_form() {
    for target in [
        "a",
        "a/b",
        "?q",
        "a:80",
        "ftp://a/",
        "file:///x",
        "mailto:x",
        "http:/a",
        "http://",
        "http:///x",
        "*x",
        "**",
    ] {
        assert_refused(&request(target, "a"), Reason::Target, 400);
    }
}

#[test]
fn rfc9112_3_2_refuses_fragments() {
    for target in ["/a#b", "/#", "http://a/#x", "/\u{e9}#b"] {
        assert_refused(&request(target, "a"), Reason::Target, 400);
    }
}

#[test]
fn rfc3986_2_5_takes_text_outside_ascii_as_it_is() {
    for target in [
        "/\u{e9}",
        "/caf\u{e9}?q=\u{442}\u{435}\u{441}\u{442}",
        "/\u{1f600}/%C3%A9",
        "http://a/\u{e9}",
    ] {
        assert_eq!(accepted(&request(target, "a")).target, target);
    }
}

#[test]
fn rfc3986_2_5_refuses_text_outside_ascii_in_an_authority() {
    for target in ["http://\u{e9}/", "http://a\u{e9}:80/"] {
        assert_refused(&request(target, "a"), Reason::Target, 400);
    }
}

#[test]
fn rfc9112_3_2_refuses_control_characters_in_any_encoding() {
    for target in ["/\u{80}", "/\u{85}", "/a?\u{9f}"] {
        assert_refused(&request(target, "a"), Reason::Target, 400);
    }
    for target in [
        "/\0",
        "/\t",
        "/\u{b}",
        "/\u{1f}",
        "/\u{7f}",
        "/\u{e9}\u{7f}",
    ] {
        assert_refused(&request(target, "a"), Reason::RequestLine, 400);
    }
}

#[test]
fn rfc9112_3_2_refuses_bytes_that_are_not_utf_8() {
    for bytes in [&b"\xe9"[..], b"\xc3", b"\xc0\xaf", b"\xed\xa0\x80", b"\xff"] {
        let input = [b"GET /", bytes, b" HTTP/1.1\r\nHost: a\r\n\r\n"].concat();
        let limits = Limits::default();
        assert_refused_within(&input, limits, Reason::RequestLine, 400);
    }
}

#[test]
fn rfc9112_3_2_2_absolute_form() {
    assert_eq!(
        accepted(&request("http://a/b?c", "a")).target,
        "http://a/b?c"
    );
    assert_eq!(accepted(&request("HTTPS://a", "a")).target, "https://a/");
    accepted("GET http://a/b HTTP/1.0\r\n\r\n");
}

#[test]
fn rfc9112_3_2_2_absolute_form_agrees_with_host_but_for_case_and_default_port() {
    for (target, host) in [
        ("http://A.example/", "a.EXAMPLE"),
        ("http://a:80/", "a"),
        ("http://a/", "a:80"),
        ("http://a:/", "a"),
        ("https://a/", "a:443"),
        ("http://a:8080/", "a:8080"),
        ("http://[::1]:80/", "[::1]"),
    ] {
        accepted(&request(target, host));
    }
}

#[test]
fn rfc9112_3_2_2_refuses_an_absolute_form_that_disagrees_with_host() {
    for (target, host) in [
        ("http://a/", "b"),
        ("http://a/", "a:443"),
        ("https://a/", "a:80"),
        ("http://a:8080/", "a"),
        ("http://a:8080/", "a:8081"),
        ("http://a.b/", "a"),
    ] {
        assert_refused(&request(target, host), Reason::HostDisagrees, 400);
    }
    let old = "GET http://a/ HTTP/1.0\r\nHost: b\r\n\r\n";
    assert_refused(old, Reason::HostDisagrees, 400);
}

#[test]
fn rfc9112_3_2_2_refuses_user_information_and_malformed_authorities() {
    for target in [
        "http://user@a/",
        "http://user:pw@a/",
        "http://@a/",
        "http://:80/",
    ] {
        let input = format!("GET {target} HTTP/1.0\r\n\r\n");
        assert_refused(&input, Reason::Target, 400);
    }
}

#[test]
fn rfc9112_3_2_3_authority_form_is_for_connect_only() {
    for target in ["a:80", "example.org:443", "[::1]:80", "127.0.0.1:0"] {
        let input = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n");
        let message = accepted(&input);
        assert_eq!((message.target.as_str(), message.upgrade), (target, true));
        assert_refused(&request(target, "a"), Reason::Target, 400);
    }
    assert!(accepted("CONNECT a:80 HTTP/1.0\r\n\r\n").upgrade);
}

#[test]
fn rfc9112_3_2_3_connect_has_no_other_form() {
    for target in [
        "/",
        "*",
        "http://a/",
        "http://a:80",
        "a",
        "a:",
        ":80",
        "u@a:80",
        "a:80/",
        "\u{e9}:80",
        "a:x",
    ] {
        let input = format!("CONNECT {target} HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_refused(&input, Reason::Target, 400);
    }
    assert_refused("CONNECT a:80 HTTP/1.1\r\n\r\n", Reason::HostMissing, 400);
}

#[test]
fn rfc9112_3_2_4_asterisk_form_is_for_options_only() {
    let options = "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n";
    assert_eq!(accepted(options).target, "*");
    assert_refused(&request("*", "a"), Reason::Target, 400);
    assert_refused("options * HTTP/1.1\r\nHost: a\r\n\r\n", Reason::Target, 400);
}
