//! Differences of responses.

use super::{Difference, Seen};

const HTTP_10: &[&str] = &["HTTP/1.0 200 OK"];
const HTTP_11_AND_CLOSE: &[&str] = &["HTTP/1.1 200 OK", "connection: \"close\""];

pub(super) const RESPONSES: &[Difference] = &[
    Difference {
        title: "A panic becomes a response",
        reason: "hyper drops the connection of a handler that panics, and a client cannot tell \
            that from a failure of the network. Here it gets 500, and the log names the route. A \
            panic midway in a body ends the connection on both.",
        seen: &[
            Seen {
                cases: &["http2/panic"],
                axum: &["the stream is reset: CANCEL"],
                ours: &[
                    "HTTP/2 500",
                    "content-length: \"19\"",
                    "content-type: \"text/plain; charset=utf-8\"",
                    "body \"the handler failed\\n\"",
                    "end of the stream",
                ],
            },
            Seen {
                cases: &["http2/panic"],
                axum: &["the stream is reset: CANCEL"],
                ours: &[
                    "HTTP/2 500",
                    "content-length: \"35\"",
                    "content-type: \"text/plain; charset=utf-8\"",
                    "body \"the handler of this request failed\\n\"",
                    "end of the stream",
                ],
            },
            Seen {
                cases: &[
                    "panics/after-a-wait",
                    "panics/at-once",
                    "panics/of-an-extractor",
                    "panics/with-a-body",
                ],
                axum: &["the connection is closed"],
                ours: &[
                    "HTTP/1.1 500 Internal Server Error",
                    "content-length: \"19\"",
                    "content-type: \"text/plain; charset=utf-8\"",
                    "body \"the handler failed\\n\"",
                    "the connection is kept",
                ],
            },
            Seen {
                cases: &[
                    "panics/after-a-wait",
                    "panics/at-once",
                    "panics/of-an-extractor",
                    "panics/with-a-body",
                ],
                axum: &[],
                ours: &[
                    "HTTP/1.1 500 Internal Server Error",
                    "connection: \"close\"",
                    "content-length: \"35\"",
                    "content-type: \"text/plain; charset=utf-8\"",
                    "body \"the handler of this request failed\\n\"",
                ],
            },
        ],
    },
    Difference {
        title: "Layers are made once",
        reason: "`axum::serve` applies the layers around the handlers of a bare `Router` anew for \
            each connection: `ConcurrencyLimitLayer::new(1)` lets one request of *each connection* \
            through. Here they are applied once, so that it is one in all; so they are on axum for \
            `router.into_make_service()`.",
        seen: &[
            Seen {
                cases: &["layers/load-shed"],
                axum: &["HTTP/1.1 200 OK", "content-length: \"4\""],
                ours: &["HTTP/1.1 503 Service Unavailable", "content-length: \"18\""],
            },
            Seen {
                cases: &["layers/load-shed"],
                axum: &["body \"done\""],
                ours: &["body \"service overloaded\""],
            },
        ],
    },
    Difference {
        title: "`block_in_place` needs a stage",
        reason: "Loops are no workers of a multi-threaded runtime. On a stage, where each route \
            begins, it works; on a loop the handler panics, its client gets 500, and the route \
            goes back to the stage.",
        seen: &[
            Seen {
                cases: &["sharing/block-in-place"],
                axum: &["HTTP/1.1 200 OK", "content-length: \"16\""],
                ours: &[
                    "HTTP/1.1 500 Internal Server Error",
                    "connection: \"close\"",
                    "content-length: \"35\"",
                ],
            },
            Seen {
                cases: &["sharing/block-in-place"],
                axum: &["body \"blocked in place\"", "the connection is kept"],
                ours: &[
                    "body \"the handler of this request failed\\n\"",
                    "the connection is closed",
                ],
            },
        ],
    },
    Difference {
        title: "The version is ours",
        reason: "A server sends the highest version that it speaks, whatever the client speaks \
            (RFC 9110, 2.5 and 6.2); hyper repeats the version 1.0. A connection that ends with \
            the response says so in any case, and the end of a body that only the end of the \
            connection marks does too. If such a body breaks off, the connection is reset, or its \
            client would take what it has for the whole.",
        seen: &[
            Seen {
                cases: &[
                    "bodies/fails-midway-http10",
                    "bodies/parts-http10",
                    "bodies/stream-http10",
                ],
                axum: HTTP_10,
                ours: HTTP_11_AND_CLOSE,
            },
            Seen {
                cases: &["bodies/fails-midway-http10"],
                axum: &[],
                ours: &["the connection is reset"],
            },
            Seen {
                cases: &["bodies/sse-http10"],
                axum: HTTP_10,
                ours: &["HTTP/1.1 200 OK"],
            },
            Seen {
                cases: &["bodies/sse-http10"],
                axum: &[],
                ours: &["connection: \"close\""],
            },
            Seen {
                cases: &["bodies/stream-http10-keep-alive"],
                axum: &["HTTP/1.0 200 OK", "connection: \"keep-alive\""],
                ours: HTTP_11_AND_CLOSE,
            },
            Seen {
                cases: &["bodies/stream-http10-keep-alive"],
                axum: &["the connection ends, which was not announced"],
                ours: &["the connection is closed"],
            },
            Seen {
                cases: &["bodies/trailers-http10"],
                axum: HTTP_10,
                ours: &[
                    "HTTP/1.1 200 OK",
                    "connection: \"close\"",
                    "trailer: \"x-checksum\"",
                ],
            },
            Seen {
                cases: &[
                    "connections/http10",
                    "connections/http10-head",
                    "connections/http10-post",
                    "connections/http10-with-host",
                ],
                axum: HTTP_10,
                ours: HTTP_11_AND_CLOSE,
            },
            Seen {
                cases: &["connections/http10-keep-alive"],
                axum: HTTP_10,
                ours: &["HTTP/1.1 200 OK"],
            },
            Seen {
                cases: &["requests/expect-http10"],
                axum: HTTP_10,
                ours: HTTP_11_AND_CLOSE,
            },
            Seen {
                cases: &["responses/connection-close-http10"],
                axum: &["HTTP/1.0 200 OK", "connection: \"close, keep-alive\""],
                ours: HTTP_11_AND_CLOSE,
            },
            Seen {
                cases: &["websockets/of-http10"],
                axum: &["HTTP/1.0 426 Upgrade Required"],
                ours: &["HTTP/1.1 426 Upgrade Required", "connection: \"close\""],
            },
        ],
    },
    Difference {
        title: "Statuses without content have none",
        reason: "204 carries neither content nor a length (RFC 9110, 8.6), 205 has no content \
            (15.3.6). A 304 may tell the length that a 200 would have, if the application says it \
            (15.4.5); that of its own body is none.",
        seen: &[
            Seen {
                cases: &["responses/204-with-body"],
                axum: &["content-length: \"4\""],
                ours: &[],
            },
            Seen {
                cases: &["responses/205-with-body"],
                axum: &["body \"text\""],
                ours: &["body \"\""],
            },
            Seen {
                cases: &["responses/205-with-body"],
                axum: &["content-length: \"4\""],
                ours: &["content-length: \"0\""],
            },
            Seen {
                cases: &["responses/304-with-length"],
                axum: &[],
                ours: &["content-length: \"1234\""],
            },
            Seen {
                cases: &["responses/304-with-body"],
                axum: &["content-length: \"4\""],
                ours: &[],
            },
            Seen {
                cases: &["responses/head-of-304", "http2/requests"],
                axum: &["content-length: \"0\""],
                ours: &[],
            },
            Seen {
                cases: &["responses/head-of-204"],
                axum: &["content-length: \"0\""],
                ours: &[],
            },
        ],
    },
    Difference {
        title: "An unregistered status has no reason phrase",
        reason: "RFC 9112, 4 lets the phrase be empty; hyper writes `<none>`.",
        seen: &[
            Seen {
                cases: &["responses/highest-status"],
                axum: &["HTTP/1.1 999 <none>"],
                ours: &["HTTP/1.1 999 "],
            },
            Seen {
                cases: &["responses/unregistered-status"],
                axum: &["HTTP/1.1 299 <none>"],
                ours: &["HTTP/1.1 299 "],
            },
        ],
    },
    Difference {
        title: "A status that is informational is no response",
        reason: "Both servers respond with 500 and close. Here the close is announced, and the \
            rest of the response is as the application made it.",
        seen: &[Seen {
            cases: &["responses/informational-status"],
            axum: &[
                "content-length: \"0\"",
                "body \"\"",
                "the connection ends, which was not announced",
            ],
            ours: &[
                "connection: \"close\"",
                "content-length: \"4\"",
                "etag: \"\\\"v1\\\"\"",
                "body \"text\"",
                "the connection is closed",
            ],
        }],
    },
    Difference {
        title: "Fields of the connection are the server's",
        reason: "`Connection`, `Keep-Alive` and `Transfer-Encoding` tell of one hop, which the \
            application does not know. `Connection: close` is obeyed; others are left out. hyper \
            sends the first two as they are, and drops the connection, without a response, for a \
            `Transfer-Encoding` that does not fit the body. `Upgrade` is named in `Connection`, as \
            RFC 9110, 7.8 asks.",
        seen: &[
            Seen {
                cases: &["responses/connection-keep-alive"],
                axum: &["connection: \"keep-alive\""],
                ours: &[],
            },
            Seen {
                cases: &["responses/connection-other"],
                axum: &["connection: \"x-other\""],
                ours: &[],
            },
            Seen {
                cases: &["responses/keep-alive"],
                axum: &["keep-alive: \"timeout=5\""],
                ours: &[],
            },
            Seen {
                cases: &["responses/transfer-encoding"],
                axum: &["the connection is closed"],
                ours: &[
                    "HTTP/1.1 200 OK",
                    "content-length: \"5\"",
                    "content-type: \"text/plain; charset=utf-8\"",
                    "body \"hello\"",
                    "the connection is kept",
                ],
            },
            Seen {
                cases: &["responses/upgrade-required"],
                axum: &[],
                ours: &["connection: \"upgrade\""],
            },
        ],
    },
    Difference {
        title: "Trailers need not be declared",
        reason: "A client that says `TE: trailers` gets them; hyper leaves out those that the \
            response does not name in `Trailer`, which RFC 9110, 6.6.2 recommends and does not \
            require.",
        seen: &[Seen {
            cases: &["bodies/trailers-not-declared"],
            axum: &[],
            ours: &["trailer \"x-checksum: abc\""],
        }],
    },
    Difference {
        title: "A body that fails at once leaves its head",
        reason: "Nothing tells before the first part whether a body will fail. What there is of \
            the response is sent, and then the connection ends; hyper may end it before it has \
            sent the head.",
        seen: &[
            Seen {
                cases: &["bodies/fails-at-once"],
                axum: &[],
                ours: &[
                    "HTTP/1.1 200 OK",
                    "transfer-encoding: \"chunked\"",
                    "body \"\"",
                ],
            },
            Seen {
                cases: &["bodies/shorter-than-its-length"],
                axum: &[],
                ours: &[
                    "HTTP/1.1 200 OK",
                    "content-length: \"10\"",
                    "body \"onetwo\"",
                ],
            },
        ],
    },
];
