//! Requests that are malformed, or that one of the servers refuses.

use axum::Router;
use axum::routing::any;
use bytes::Bytes;

use crate::harness::Step::{End, Rejection};
use crate::harness::{App, Case, Rig, Step, raw};

pub(crate) fn cases() -> Vec<Case> {
    let tables = [REQUEST_LINES, HOSTS, FIELDS, FRAMINGS, CHUNKS];
    let cases = tables
        .into_iter()
        .flatten()
        .map(|(name, bytes)| case(name, raw(*bytes)));
    cases.chain(sizes()).collect()
}

fn app(_: Rig) -> Router {
    Router::new().fallback(any(|body: Bytes| async move { body }))
}

fn case(name: &'static str, request: Step) -> Case {
    Case::steps(name, App::Router(app), vec![request, Rejection, End])
}

const REQUEST_LINES: &[(&str, &str)] = &[
    ("rejections/nonsense", "nonsense\r\n\r\n"),
    ("rejections/no-version", "GET /\r\n\r\n"),
    ("rejections/http12", "GET / HTTP/1.2\r\nHost: a\r\n\r\n"),
    ("rejections/http09", "GET / HTTP/0.9\r\nHost: a\r\n\r\n"),
    ("rejections/http20", "GET / HTTP/2.0\r\nHost: a\r\n\r\n"),
    ("rejections/http30", "GET / HTTP/3.0\r\nHost: a\r\n\r\n"),
    (
        "rejections/version-in-small-letters",
        "GET / http/1.1\r\nHost: a\r\n\r\n",
    ),
    ("rejections/bad-method", "G@T / HTTP/1.1\r\nHost: a\r\n\r\n"),
    (
        "rejections/long-method",
        "ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFGHIJ / HTTP/1.1\r\nHost: a\r\n\r\n",
    ),
    (
        "rejections/two-spaces",
        "GET  / HTTP/1.1\r\nHost: a\r\n\r\n",
    ),
    (
        "rejections/space-first",
        " GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    ),
    ("rejections/line-feeds-only", "GET / HTTP/1.1\nHost: a\n\n"),
    (
        "rejections/carriage-return-only",
        "GET / HTTP/1.1\rHost: a\r\n\r\n",
    ),
    ("rejections/tls", "\x16\x03\x01\x02\0\x01\0\x01\x7c\x03\x03"),
    ("rejections/head-of-nonsense", "HEAD / HTTP/9\r\n\r\n"),
];

const HOSTS: &[(&str, &str)] = &[
    ("rejections/no-host", "GET / HTTP/1.1\r\n\r\n"),
    (
        "rejections/two-hosts",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    ),
    ("rejections/empty-host", "GET / HTTP/1.1\r\nHost:\r\n\r\n"),
    ("rejections/bad-host", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"),
    (
        "rejections/host-with-user",
        "GET / HTTP/1.1\r\nHost: u@a\r\n\r\n",
    ),
];

const FIELDS: &[(&str, &str)] = &[
    (
        "rejections/no-colon",
        "GET / HTTP/1.1\r\nHost: a\r\nx-value\r\n\r\n",
    ),
    (
        "rejections/space-before-colon",
        "GET / HTTP/1.1\r\nHost: a\r\nx : y\r\n\r\n",
    ),
    (
        "rejections/no-name",
        "GET / HTTP/1.1\r\nHost: a\r\n: y\r\n\r\n",
    ),
    (
        "rejections/bad-name",
        "GET / HTTP/1.1\r\nHost: a\r\nx(y): z\r\n\r\n",
    ),
    (
        "rejections/folded",
        "GET / HTTP/1.1\r\nHost: a\r\nx: y\r\n z\r\n\r\n",
    ),
    (
        "rejections/nul-in-value",
        "GET / HTTP/1.1\r\nHost: a\r\nx: y\0z\r\n\r\n",
    ),
    (
        "rejections/control-in-value",
        "GET / HTTP/1.1\r\nHost: a\r\nx: y\x01z\r\n\r\n",
    ),
    (
        "rejections/utf-8-in-value",
        "GET / HTTP/1.1\r\nHost: a\r\nx: caf\u{e9}\r\n\r\n",
    ),
    (
        "rejections/utf-8-in-name",
        "GET / HTTP/1.1\r\nHost: a\r\ncaf\u{e9}: x\r\n\r\n",
    ),
    (
        "rejections/unknown-expectation",
        "GET / HTTP/1.1\r\nHost: a\r\nExpect: more\r\n\r\n",
    ),
];

const FRAMINGS: &[(&str, &str)] = &[
    (
        "rejections/length-and-chunked",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\
            \r\n",
    ),
    (
        "rejections/chunked-and-length",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\
            \r\n",
    ),
    (
        "rejections/two-equal-lengths",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
    ),
    (
        "rejections/list-of-equal-lengths",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5, 5\r\n\r\nhello",
    ),
    (
        "rejections/two-lengths",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    ),
    (
        "rejections/signed-length",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\nhello",
    ),
    (
        "rejections/negative-length",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -5\r\n\r\nhello",
    ),
    (
        "rejections/length-in-words",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: five\r\n\r\nhello",
    ),
    (
        "rejections/empty-length",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n",
    ),
    (
        "rejections/length-beyond-64-bits",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n",
    ),
    (
        "rejections/chunked-of-http10",
        "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ),
    (
        "rejections/gzip-and-chunked",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    ),
    (
        "rejections/chunked-and-gzip",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
    ),
    (
        "rejections/chunked-twice",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
    ),
    (
        "rejections/two-codings",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\
            \r\n0\r\n\r\n",
    ),
    (
        "rejections/identity",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n",
    ),
    (
        "rejections/comma-before-chunked",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: , chunked\r\n\r\n0\r\n\r\n",
    ),
    (
        "rejections/comma-behind-chunked",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked,\r\n\r\n0\r\n\r\n",
    ),
];

const CHUNKS: &[(&str, &str)] = &[
    (
        "rejections/chunk-size-in-words",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nfive!\r\nhello\r\n0\r\n\
            \r\n",
    ),
    (
        "rejections/chunk-without-size",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\r\nhello\r\n0\r\n\r\n",
    ),
    (
        "rejections/chunk-size-beyond-64-bits",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000005\r\n\
            hello\r\n0\r\n\r\n",
    ),
    (
        "rejections/chunk-longer-than-its-size",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhello\r\n0\r\n\r\n",
    ),
    (
        "rejections/chunk-ended-by-line-feed",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n",
    ),
    (
        "rejections/space-behind-chunk-size",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5 \r\nhello\r\n0\r\n\r\n",
    ),
    (
        "rejections/bad-trailer",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nno colon\r\n\r\n",
    ),
    (
        "rejections/length-in-trailer",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 5\r\n\
            \r\n",
    ),
];

/// Heads that are too large for one of the servers.
fn sizes() -> Vec<Case> {
    let with_fields = |count: usize| {
        let fields: Vec<_> = (0..count)
            .map(|number| format!("x-{number}: y\r\n"))
            .collect();
        raw(format!(
            "GET / HTTP/1.1\r\nHost: a\r\n{}\r\n",
            fields.concat()
        ))
    };
    let with_value = |bytes: usize| {
        raw(format!(
            "GET / HTTP/1.1\r\nHost: a\r\nx: {}\r\n\r\n",
            "y".repeat(bytes)
        ))
    };
    let cases = [
        ("rejections/99-fields", with_fields(98)),
        ("rejections/100-fields", with_fields(99)),
        ("rejections/101-fields", with_fields(100)),
        ("rejections/60-kib-of-head", with_value(60 * 1_024)),
        ("rejections/70-kib-of-head", with_value(70 * 1_024)),
    ];
    cases
        .into_iter()
        .map(|(name, request)| case(name, request))
        .collect()
}
