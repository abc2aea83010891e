//! Differences of connections and their messages.

use super::{Difference, Seen};

pub(super) const CONNECTIONS: &[Difference] = &[
    Difference {
        title: "A connection that ends says so",
        reason: "`Connection: close` tells a client that it cannot send its next request on this \
            connection, where hyper lets it find out.",
        seen: &[
            Seen {
                cases: &[
                    "limits/over-a-layer",
                    "limits/over-a-layer-and-expecting",
                    "limits/multipart-over-its-limit",
                    "limits/over-two-mebibytes",
                    "limits/over-two-mebibytes-of-json",
                    "limits/over-what-was-raised",
                    "limits/own-rejection",
                    "rejections/bad-trailer",
                    "rejections/chunk-ended-by-line-feed",
                    "rejections/chunk-longer-than-its-size",
                    "rejections/chunk-size-beyond-64-bits",
                    "rejections/chunk-size-in-words",
                    "rejections/chunk-without-size",
                    "requests/expect-and-ignore",
                    "requests/unread-large",
                ],
                axum: &[],
                ours: &["connection: \"close\""],
            },
            Seen {
                cases: &[
                    "rejections/bad-trailer",
                    "rejections/chunk-ended-by-line-feed",
                    "rejections/chunk-longer-than-its-size",
                    "rejections/chunk-size-beyond-64-bits",
                    "rejections/chunk-size-in-words",
                    "rejections/chunk-without-size",
                    "requests/expect-and-ignore",
                ],
                axum: &["the connection ends, which was not announced"],
                ours: &["the connection is closed"],
            },
        ],
    },
    Difference {
        title: "A body that nobody reads does not end its connection",
        reason: "Up to 256 KiB of it are passed over, so that the connection can be used again. \
            hyper closes it if the body is not there yet.",
        seen: &[Seen {
            cases: &["requests/unread-and-sent-late", "requests/unread-chunked"],
            axum: &["the connection ends, which was not announced"],
            ours: &["the connection is kept"],
        }],
    },
    Difference {
        title: "A body that breaks ends its request",
        reason: "If a client sends a malformed body, or closes its side before the end, the \
            handler is dropped where it waits for the rest, and a malformed body gets \
            400. On axum the handler is told by an error, and its response is sent.",
        seen: &[
            Seen {
                cases: &["requests/client-closes-midway"],
                axum: &[
                    "HTTP/1.1 418 I'm a teapot",
                    "content-length: \"6\"",
                    "content-type: \"text/plain; charset=utf-8\"",
                    "body \"failed\"",
                    "the connection ended",
                ],
                ours: &["the connection is closed"],
            },
            Seen {
                cases: &["requests/bad-chunk-midway"],
                axum: &["HTTP/1.1 418 I'm a teapot", "content-length: \"6\""],
                ours: &[
                    "HTTP/1.1 400 Bad Request",
                    "connection: \"close\"",
                    "content-length: \"15\"",
                ],
            },
            Seen {
                cases: &["requests/bad-chunk-midway"],
                axum: &["body \"failed\""],
                ours: &["body \"malformed body\\n\""],
            },
        ],
    },
    Difference {
        title: "100 (Continue) is sent to those that wait",
        reason: "A client that sends its body at once needs none (RFC 9110, 10.1.1).",
        seen: &[Seen {
            cases: &["requests/expect-and-send-at-once"],
            axum: &["HTTP/1.1 100 Continue"],
            ours: &[],
        }],
    },
    Difference {
        title: "What asked for an upgrade and got none ends its connection",
        reason: "A request with `Upgrade` is read by another parser than the rest. For no request \
            to be read by two, its connection ends with the response.",
        seen: &[
            Seen {
                cases: &[
                    "websockets/by-post",
                    "websockets/of-a-plain-route",
                    "websockets/of-nothing",
                    "websockets/without-key",
                    "websockets/wrong-version",
                ],
                axum: &["the connection is kept"],
                ours: &["the connection is closed"],
            },
            Seen {
                cases: &[
                    "websockets/by-post",
                    "websockets/of-a-plain-route",
                    "websockets/of-nothing",
                    "websockets/without-key",
                    "websockets/wrong-version",
                ],
                axum: &[],
                ours: &["connection: \"close\""],
            },
        ],
    },
    Difference {
        title: "A refused CONNECT ends its connection",
        reason: "A client may send what is meant for the tunnel before it reads that there is \
            none; that must not be taken for a request.",
        seen: &[
            Seen {
                cases: &["connections/tunnel-refused"],
                axum: &[],
                ours: &["connection: \"close\""],
            },
            Seen {
                cases: &["connections/tunnel-refused"],
                axum: &["the connection is kept"],
                ours: &["the connection is closed"],
            },
        ],
    },
    Difference {
        title: "Heads of HTTP/2 may be as large as those of HTTP/1",
        reason: "65,536 bytes (`Limits::head_bytes_max`), where hyper takes 16,384 for HTTP/2.",
        seen: &[Seen {
            cases: &["http2/large-request-head"],
            axum: &["HTTP/2 431", "body \"\""],
            ours: &[
                "HTTP/2 200",
                "content-length: \"17\"",
                "content-type: \"text/plain; charset=utf-8\"",
                "body \"hello by HTTP/2.0\"",
            ],
        }],
    },
];
