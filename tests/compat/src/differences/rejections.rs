//! Differences of refused requests.

use super::{Difference, Seen};

const ACCEPTED: &[&str] = &[
    "HTTP/1.1 200 OK",
    "content-length: \"0\"",
    "content-type: \"application/octet-stream\"",
    "body \"\"",
    "the connection is kept",
];
const BAD_REQUEST: &[&str] = &[
    "HTTP/1.1 400 Bad Request",
    "connection: \"close\"",
    "content-length: of these words",
    "content-type: \"text/plain; charset=utf-8\"",
    "body: the reason in words",
    "the connection is closed",
];
const NOT_IMPLEMENTED: &[&str] = &[
    "HTTP/1.1 501 Not Implemented",
    "connection: \"close\"",
    "content-length: of these words",
    "content-type: \"text/plain; charset=utf-8\"",
    "body: the reason in words",
    "the connection is closed",
];
const HEAD_TOO_LARGE: &[&str] = &[
    "HTTP/1.1 431 Request Header Fields Too Large",
    "connection: \"close\"",
    "content-length: of these words",
    "content-type: \"text/plain; charset=utf-8\"",
    "body: the reason in words",
    "the connection is closed",
];
const TARGET_TOO_LONG: &[&str] = &[
    "HTTP/1.1 414 URI Too Long",
    "connection: \"close\"",
    "content-length: of these words",
    "content-type: \"text/plain; charset=utf-8\"",
    "body: the reason in words",
    "the connection is closed",
];
const EXPECTATION_FAILED: &[&str] = &[
    "HTTP/1.1 417 Expectation Failed",
    "connection: \"close\"",
    "content-length: of these words",
    "content-type: \"text/plain; charset=utf-8\"",
    "body: the reason in words",
    "the connection is closed",
];
const SILENT: &[&str] = &["content-length: \"0\"", "body \"\""];
const IN_WORDS: &[&str] = &[
    "content-length: of these words",
    "content-type: \"text/plain; charset=utf-8\"",
    "body: the reason in words",
];

pub(super) const REJECTIONS: &[Difference] = &[
    Difference {
        title: "A rejection tells why",
        reason: "A request that the server itself refuses gets a line of text, which \
            names the rule.",
        seen: &[
            Seen {
                cases: &["connections/nonsense-behind-a-request"],
                axum: SILENT,
                ours: &[
                    "content-length: \"23\"",
                    "content-type: \"text/plain; charset=utf-8\"",
                    "body \"malformed request line\\n\"",
                ],
            },
            Seen {
                cases: &[
                    "rejections/101-fields",
                    "rejections/bad-method",
                    "rejections/bad-name",
                    "rejections/carriage-return-only",
                    "rejections/chunked-and-gzip",
                    "rejections/chunked-of-http10",
                    "rejections/comma-behind-chunked",
                    "rejections/control-in-value",
                    "rejections/empty-length",
                    "rejections/folded",
                    "rejections/http09",
                    "rejections/http20",
                    "rejections/http30",
                    "rejections/identity",
                    "rejections/length-beyond-64-bits",
                    "rejections/length-in-words",
                    "rejections/list-of-equal-lengths",
                    "rejections/negative-length",
                    "rejections/no-colon",
                    "rejections/no-name",
                    "rejections/no-version",
                    "rejections/nonsense",
                    "rejections/nul-in-value",
                    "rejections/signed-length",
                    "rejections/space-before-colon",
                    "rejections/space-first",
                    "rejections/tls",
                    "rejections/two-lengths",
                    "rejections/two-spaces",
                    "rejections/utf-8-in-name",
                    "rejections/version-in-small-letters",
                ],
                axum: SILENT,
                ours: IN_WORDS,
            },
            Seen {
                cases: &["rejections/head-of-nonsense"],
                axum: &["content-length: \"0\""],
                ours: &[
                    "content-length: \"23\"",
                    "content-type: \"text/plain; charset=utf-8\"",
                ],
            },
            Seen {
                cases: &[
                    "targets/angle-brackets",
                    "targets/caret",
                    "targets/control",
                    "targets/delete",
                    "targets/longest",
                    "targets/none",
                    "targets/query-only",
                    "targets/quote-in-query",
                    "targets/raw-latin-1",
                    "targets/raw-latin-1-query",
                    "targets/relative",
                    "targets/space",
                    "targets/tab",
                ],
                axum: SILENT,
                ours: IN_WORDS,
            },
        ],
    },
    Difference {
        title: "What can be read in two ways is refused",
        reason: "Where two servers on the way differ in what a request is, one can be made to take \
            for a request what the other took for a body (RFC 9112, 11.2). So what the RFCs let a \
            server refuse, is refused: a host that is missing, repeated or malformed (RFC 9112, \
            3.2), lengths that are repeated or stand beside a coding (6.3), codings other than a \
            single `chunked` (6.1), spaces behind the size of a chunk (7.1), framing in trailers \
            (RFC 9110, 6.5.1), lines that end by a line feed alone (RFC 9112, 2.2).",
        seen: &[
            Seen {
                cases: &[
                    "rejections/bad-host",
                    "rejections/chunked-twice",
                    "rejections/comma-before-chunked",
                    "rejections/empty-host",
                    "rejections/host-with-user",
                    "rejections/length-in-trailer",
                    "rejections/line-feeds-only",
                    "rejections/no-host",
                    "rejections/two-codings",
                    "rejections/two-hosts",
                ],
                axum: ACCEPTED,
                ours: BAD_REQUEST,
            },
            Seen {
                cases: &[
                    "rejections/chunked-and-length",
                    "rejections/length-and-chunked",
                ],
                axum: &["HTTP/1.1 200 OK"],
                ours: &["HTTP/1.1 400 Bad Request"],
            },
            Seen {
                cases: &[
                    "rejections/chunked-and-length",
                    "rejections/length-and-chunked",
                ],
                axum: &[
                    "content-length: \"0\"",
                    "content-type: \"application/octet-stream\"",
                    "body \"\"",
                ],
                ours: IN_WORDS,
            },
            Seen {
                cases: &["rejections/gzip-and-chunked", "rejections/long-method"],
                axum: ACCEPTED,
                ours: NOT_IMPLEMENTED,
            },
            Seen {
                cases: &[
                    "rejections/space-behind-chunk-size",
                    "rejections/two-equal-lengths",
                ],
                axum: &[
                    "HTTP/1.1 200 OK",
                    "content-length: \"5\"",
                    "content-type: \"application/octet-stream\"",
                    "body \"hello\"",
                    "the connection is kept",
                ],
                ours: BAD_REQUEST,
            },
        ],
    },
    Difference {
        title: "A target is in one of the four forms",
        reason: "RFC 9112, 3.2: a path with its query, `http` or `https` with the authority that \
            `Host` names and without a user, an authority with `CONNECT`, and `*` with `OPTIONS`. \
            A fragment is none of the server's.",
        seen: &[
            Seen {
                cases: &["targets/absolute-of-another-host"],
                axum: &[
                    "HTTP/1.1 200 OK",
                    "content-length: \"26\"",
                    "content-type: \"application/octet-stream\"",
                    "body \"Some(other.test) \\\"/a\\\" None\"",
                    "the connection is kept",
                ],
                ours: BAD_REQUEST,
            },
            Seen {
                cases: &["targets/absolute-of-another-scheme"],
                axum: &[
                    "HTTP/1.1 200 OK",
                    "content-length: \"27\"",
                    "content-type: \"application/octet-stream\"",
                    "body \"Some(compat.test) \\\"/a\\\" None\"",
                    "the connection is kept",
                ],
                ours: BAD_REQUEST,
            },
            Seen {
                cases: &["targets/absolute-with-user"],
                axum: &[
                    "HTTP/1.1 200 OK",
                    "content-length: \"32\"",
                    "content-type: \"application/octet-stream\"",
                    "body \"Some(user@compat.test) \\\"/a\\\" None\"",
                    "the connection is kept",
                ],
                ours: BAD_REQUEST,
            },
            Seen {
                cases: &["targets/asterisk"],
                axum: &[
                    "HTTP/1.1 200 OK",
                    "content-length: \"13\"",
                    "content-type: \"application/octet-stream\"",
                    "body \"None \\\"*\\\" None\"",
                    "the connection is kept",
                ],
                ours: BAD_REQUEST,
            },
            Seen {
                cases: &["targets/authority"],
                axum: &[
                    "HTTP/1.1 200 OK",
                    "content-length: \"28\"",
                    "content-type: \"application/octet-stream\"",
                    "body \"Some(compat.test:80) \\\"\\\" None\"",
                    "the connection is kept",
                ],
                ours: BAD_REQUEST,
            },
            Seen {
                cases: &["targets/fragment"],
                axum: &[
                    "HTTP/1.1 200 OK",
                    "content-length: \"19\"",
                    "content-type: \"application/octet-stream\"",
                    "body \"None \\\"/a\\\" Some(\\\"b\\\")\"",
                    "the connection is kept",
                ],
                ours: BAD_REQUEST,
            },
        ],
    },
    Difference {
        title: "HTTP/1.2 is taken for HTTP/1.1",
        reason: "A server treats a version with a higher minor number as the highest that it knows \
            (RFC 9110, 2.5).",
        seen: &[
            Seen {
                cases: &["rejections/http12"],
                axum: &["HTTP/1.1 400 Bad Request", "connection: \"close\""],
                ours: &["HTTP/1.1 200 OK"],
            },
            Seen {
                cases: &["rejections/http12"],
                axum: &[],
                ours: &["content-type: \"application/octet-stream\""],
            },
            Seen {
                cases: &["rejections/http12"],
                axum: &["the connection is closed"],
                ours: &["the connection is kept"],
            },
        ],
    },
    Difference {
        title: "Unknown versions and expectations have statuses of their own",
        reason: "505 (RFC 9110, 15.6.6) and 417 (15.5.18), where hyper responds with 400 or passes \
            over it.",
        seen: &[
            Seen {
                cases: &[
                    "rejections/http09",
                    "rejections/http20",
                    "rejections/http30",
                ],
                axum: &["HTTP/1.1 400 Bad Request"],
                ours: &["HTTP/1.1 505 HTTP Version Not Supported"],
            },
            Seen {
                cases: &["rejections/unknown-expectation"],
                axum: ACCEPTED,
                ours: EXPECTATION_FAILED,
            },
        ],
    },
    Difference {
        title: "Targets and heads have limits",
        reason: "8,192 bytes of the target and 65,536 of the head, by default: \
            `Limits::target_bytes_max`, `Limits::head_bytes_max`. hyper takes 65,534 of the target \
            and some 400 KiB of the head.",
        seen: &[
            Seen {
                cases: &["rejections/70-kib-of-head"],
                axum: ACCEPTED,
                ours: HEAD_TOO_LARGE,
            },
            Seen {
                cases: &["targets/longer"],
                axum: &[
                    "HTTP/1.1 200 OK",
                    "content-length: \"10013\"",
                    "content-type: \"application/octet-stream\"",
                    "body of 10013 bytes, ec4338e2053fdbfb",
                    "the connection is kept",
                ],
                ours: TARGET_TOO_LONG,
            },
        ],
    },
];
