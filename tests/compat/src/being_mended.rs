//! What differs from axum and is being mended. It is on no page.

/// What is wrong, and the cases that show it. A case goes when its test says that it does not differ
/// any more, but for what is listed to stay.
pub(crate) const BEING_MENDED: &[(&str, &[&str])] = &[
    (
        "the end of a chunk is withheld until the next",
        &[
            "bodies/fails-midway",
            "bodies/parts",
            "bodies/parts-twice",
            "bodies/sse",
            "panics/in-a-body",
            "requests/echo-part-by-part",
            "shutdown/of-a-stream",
        ],
    ),
    (
        "the server refuses bodies over 2 MiB in place of the application",
        &[
            "http2/over-two-mebibytes",
            "http2/without-limit",
            "limits/disabled",
            "limits/disabled-and-chunked",
            "limits/layer-of-three-mebibytes",
            "limits/multipart-of-25-mb",
            "limits/multipart-of-250-mb",
            "limits/multipart-over-its-limit",
            "limits/over-two-mebibytes",
            "limits/over-two-mebibytes-chunked",
            "limits/over-two-mebibytes-of-json",
            "limits/over-what-was-raised",
            "limits/own-rejection",
            "limits/own-rejection-chunked",
            "limits/raised",
            "limits/raised-and-chunked",
            "limits/raw-stream",
            "limits/raw-stream-chunked",
            "limits/upload-to-a-file",
            "requests/echo-of-a-large-body",
        ],
    ),
    (
        "a 304 that says nothing of a length has one",
        &["responses/304", "responses/304-and-then-200"],
    ),
    ("UTF-8 in a target is refused", &["targets/raw-utf-8"]),
    (
        "a reason phrase of the application is not sent",
        &["responses/empty-reason-phrase", "responses/reason-phrase"],
    ),
    ("HTTP/1.2 is refused", &["refusals/http12"]),
    (
        "an empty member of a list of codings is 501",
        &["refusals/comma-before-chunked"],
    ),
    (
        "CONNECT is refused",
        &[
            "connections/tunnel",
            "connections/tunnel-refused",
            "targets/connect",
        ],
    ),
    (
        "WebSockets over HTTP/2 are not offered",
        &["http2/websocket"],
    ),
];
