//! Requests that try to get past the server, and HTTP/2.

use std::process::Command;

use sha2::{Digest, Sha256};

use crate::http;
use crate::site::{Site, sum};

/// Responds with all that the application gets from the request's head.
const SHOW: &str = "sub {
    my ($env) = @_;
    [200, [], [map { \"$_=$env->{$_}\\n\" } sort grep { /^[A-Z]/ } keys %$env]];
};";

#[test]
fn a_request_with_two_meanings_is_refused_and_never_seen() {
    let mut site = Site::serve(SHOW, &["--workers", "1"]);
    let smuggled = "GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n";
    let heads = [
        "Content-Length: 4\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 4",
        "Content-Length: 4\r\nContent-Length: 5",
        "Content-Length: 4, 5",
        "Content-Length: +4",
        "Content-Length: -4",
        "Content-Length: 0x4",
        "Content-Length: 18446744073709551620",
        "Transfer-Encoding: identity, chunked, identity",
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
        "Transfer-Encoding : chunked",
        "Transfer-Encoding:\u{b}chunked",
        "Content-Length : 4",
        "X: a\r\n Content-Length: 4",
        "X: a\0b",
        "X y: z",
        ": z",
    ];
    for head in heads {
        let bytes = format!("POST / HTTP/1.1\r\nHost: h\r\n{head}\r\n\r\n0\r\n\r\n{smuggled}");
        let response = http::finish(http::send(site.address(), bytes.as_bytes()));
        let text = response.text();
        assert!(
            [400, 411, 413, 501].contains(&response.status),
            "{head:?}: {response:?}"
        );
        assert!(
            !text.contains("HTTP/1.1 "),
            "a second response to {head:?}: {text}"
        );
    }
    let lines = [
        "GET /a%00b HTTP/1.1\r\nHost: h",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: b",
        "GET / HTTP/1.1",
        "GET / x HTTP/1.1\r\nHost: h",
    ];
    for line in lines {
        let bytes = format!("{line}\r\nConnection: close\r\n\r\n");
        let response = http::finish(http::send(site.address(), bytes.as_bytes()));
        assert_eq!(response.status, 400, "{line:?}: {response:?}");
    }
    assert_eq!(sum(&site.status(), "served"), 0, "{:#}", site.status());
    site.end(0);
}

#[test]
fn no_field_can_pass_for_another() {
    let mut site = Site::serve(SHOW, &["--workers", "1"]);
    let fields = [
        "X_Forwarded_For: evil",
        "X-Forwarded-For: good",
        "X-Forwarded_For: evil",
        "Proxy: http://evil",
        "Content_Length: evil",
        "Content_Type: evil",
        "Cookie: a=1",
        "Cookie: b=2",
        "X-Twice: 1",
        "x-twice: 2",
    ];
    let seen = http::request(site.address(), "GET", "/p?q", &fields, b"").text();
    assert!(!seen.contains("evil"), "{seen}");
    let expected = [
        "HTTP_X_FORWARDED_FOR=good",
        "HTTP_COOKIE=a=1; b=2",
        "HTTP_X_TWICE=1, 2",
        "PATH_INFO=/p",
        "QUERY_STRING=q",
        "REMOTE_ADDR=127.0.0.1",
    ];
    for line in expected {
        assert!(seen.lines().any(|seen| seen == line), "{line}: {seen}");
    }
    let absent = [
        "HTTP_PROXY=",
        "CONTENT_TYPE=",
        "CONTENT_LENGTH=",
        "HTTP_CONTENT_",
    ];
    for name in absent {
        assert!(!seen.contains(name), "{name}: {seen}");
    }
    site.end(0);
}

/// An application's response cannot begin a second one.
#[test]
fn fields_with_line_ends_are_not_sent() {
    let source = "sub { [200, ['X-Evil' => \"a\\r\\nSet-Cookie: b\"], ['body']] };";
    let mut site = Site::serve(source, &["--workers", "1"]);
    let response = site.get("/");
    assert_eq!(response.status, 500, "{response:?}");
    assert_eq!(response.field("set-cookie"), None);
    site.end(0);
}

#[test]
fn http_2_with_prior_knowledge() {
    let mut site = Site::serve(SHOW, &["--workers", "1"]);
    let seen = curl(&[&format!("http://{}/p?q", site.address())]);
    let authority = format!("HTTP_HOST={}", site.address());
    for line in [
        "SERVER_PROTOCOL=HTTP/2.0",
        "PATH_INFO=/p",
        &authority,
        "2 200",
    ] {
        assert!(seen.lines().any(|seen| seen == line), "{line}: {seen}");
    }
    site.end(0);
}

#[test]
fn an_upload_by_http_2() {
    let mut site = Site::example("upload.psgi", &["--workers", "1"]);
    let body: Vec<u8> = (0..=250).cycle().take(1_048_576).collect();
    let file = site.folder.path("body");
    std::fs::write(&file, &body).unwrap();
    let data = format!("@{}", file.display());
    let response = curl(&[
        "--data-binary",
        &data,
        &format!("http://{}/", site.address()),
    ]);
    let digest = hex::encode(Sha256::digest(&body));
    assert_eq!(
        response,
        format!("1048576 bytes, SHA-256 {digest}\n2 200\n")
    );
    site.end(0);
}

fn curl(arguments: &[&str]) -> String {
    let output = Command::new("curl")
        .args(["--silent", "--show-error", "--max-time", "30"])
        .args(["--http2-prior-knowledge", "--noproxy", "*"])
        .args(["--write-out", "%{http_version} %{http_code}\n"])
        .args(arguments)
        .output()
        .expect("curl is installed; else run `cargo xtask tools`");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaint}");
    String::from_utf8(output.stdout).unwrap()
}
