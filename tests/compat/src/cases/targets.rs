use axum::Router;
use axum::http::Uri;
use axum::routing::any;

use crate::harness::Step::{End, Rejection};
use crate::harness::{App, Case, Rig, Step, ask, get, raw};

pub(crate) fn cases() -> Vec<Case> {
    [origin_form(), other_forms(), beyond_ascii()]
        .into_iter()
        .flatten()
        .collect()
}

/// Responds with the target of the request; as bytes, since text would be taken for a rejection.
fn app(_: Rig) -> Router {
    Router::new().fallback(any(|uri: Uri| async move {
        format!("{:?} {:?} {:?}", uri.authority(), uri.path(), uri.query()).into_bytes()
    }))
}

fn one(name: &'static str, request: Step) -> Case {
    Case::steps(name, App::Router(app), vec![request, Rejection, End])
}

/// Sends a request line as it is.
fn line(line: impl AsRef<[u8]>) -> Step {
    let mut bytes = line.as_ref().to_vec();
    bytes.extend_from_slice(b"\r\nHost: compat.test\r\n\r\n");
    raw(bytes)
}

fn origin_form() -> Vec<Case> {
    vec![
        Case::apart(
            "targets/paths",
            App::Router(app),
            [
                "/",
                "//",
                "//a//b",
                "/a/../b",
                "/./",
                "/a;b=c",
                "/a,b",
                "/a%00b",
                "/a%2e%2e/b",
                "/a:b@c",
                "/~a",
                "/a+b",
                "/(a)",
                "/a'b",
                "/*",
                "/%",
            ]
            .map(get),
        ),
        Case::apart(
            "targets/queries",
            App::Router(app),
            [
                "/?",
                "/a?",
                "/?a",
                "/?a=b&c",
                "/a??b",
                "/?a=/b?c",
                "/?a=%",
                "/?a[]=1&a[]=2",
                "/?%00",
                "/?a='b'",
                "/?a={b}",
                "/?a=b|c",
            ]
            .map(get),
        ),
        one("targets/long", get(&format!("/{}", "a".repeat(8_000)))),
        one("targets/longer", get(&format!("/{}", "a".repeat(10_000)))),
        one("targets/longest", get(&format!("/{}", "a".repeat(70_000)))),
        one("targets/fragment", get("/a?b#c")),
        one("targets/quote-in-query", get("/?a=\"b\"")),
        one("targets/quote-in-path", get("/\"a\"")),
        one("targets/angle-brackets", get("/<a>")),
        one("targets/braces", get("/{a}")),
        one("targets/backslash", get("/a\\b")),
        one("targets/caret", get("/a^b|c`d")),
        one("targets/space", get("/a b")),
        one("targets/tab", get("/a\tb")),
        one("targets/delete", get("/a\x7fb")),
        one("targets/control", get("/a\x01b")),
    ]
}

fn other_forms() -> Vec<Case> {
    vec![
        Case::apart(
            "targets/absolute",
            App::Router(app),
            [
                line("GET http://compat.test/a?b=c HTTP/1.1"),
                line("GET http://compat.test HTTP/1.1"),
                line("GET http://compat.test:80/a HTTP/1.1"),
                line("GET HTTP://COMPAT.test/a HTTP/1.1"),
                line("GET https://compat.test/a HTTP/1.1"),
            ],
        ),
        one(
            "targets/absolute-of-another-host",
            line("GET http://other.test/a HTTP/1.1"),
        ),
        one(
            "targets/absolute-of-another-scheme",
            line("GET ftp://compat.test/a HTTP/1.1"),
        ),
        one(
            "targets/absolute-with-user",
            line("GET http://user@compat.test/a HTTP/1.1"),
        ),
        one("targets/authority", line("GET compat.test:80 HTTP/1.1")),
        one("targets/asterisk", line("GET * HTTP/1.1")),
        one("targets/options-asterisk", ask("OPTIONS *", &[], "")),
        one("targets/relative", line("GET a/b HTTP/1.1")),
        one("targets/query-only", line("GET ?a HTTP/1.1")),
        one("targets/none", line("GET  HTTP/1.1")),
        one("targets/connect", line("CONNECT compat.test:80 HTTP/1.1")),
    ]
}

fn beyond_ascii() -> Vec<Case> {
    vec![
        Case::apart(
            "targets/raw-utf-8",
            App::Router(app),
            [
                get("/caf\u{e9}"),
                get("/?name=caf\u{e9}"),
                get("/\u{65e5}\u{672c}?\u{1f600}"),
            ],
        ),
        one("targets/raw-latin-1", line(b"GET /caf\xe9 HTTP/1.1")),
        one("targets/raw-latin-1-query", line(b"GET /?caf\xe9 HTTP/1.1")),
    ]
}
