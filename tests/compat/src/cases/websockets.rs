//! `WebSocket`s over HTTP/1.1, byte by byte; those over HTTP/2 are among its own cases.

use axum::Router;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use axum::routing::{any, get as on_get};

use crate::harness::Step::{Bytes, End, Ended, Head, Note, Release, Response as Read};
use crate::harness::{App, Case, Rig, Step, ask, get, raw};

pub(crate) fn cases() -> Vec<Case> {
    [frames(), endings(), handshakes(), refused()]
        .into_iter()
        .flatten()
        .collect()
}

const UPGRADE: &[&str] = &[
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
];

fn upgrade(target: &str, more: &[&str]) -> Step {
    ask(&format!("GET {target}"), &[UPGRADE, more].concat(), "")
}

/// Encodes a frame of a client, masked by zeros. `first` is its first byte.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first];
    match payload.len() {
        length @ 0..126 => frame.push(0x80 | u8::try_from(length).unwrap()),
        length => {
            frame.push(0x80 | 0x7e);
            frame.extend_from_slice(&u16::try_from(length).unwrap().to_be_bytes());
        }
    }
    frame.extend_from_slice(&[0; 4]);
    frame.extend_from_slice(payload);
    frame
}

const TEXT: u8 = 0x81;
const BINARY: u8 = 0x82;
const CLOSE: u8 = 0x88;
const PING: u8 = 0x89;

fn app(rig: Rig) -> Router {
    Router::new()
        .route(
            "/echo",
            any(|upgrade: WebSocketUpgrade| async { upgrade.on_upgrade(echo) }),
        )
        .route(
            "/chosen",
            any(|upgrade: WebSocketUpgrade| async {
                upgrade.protocols(["v2", "v1"]).on_upgrade(echo)
            }),
        )
        .route(
            "/says",
            any(move |upgrade: WebSocketUpgrade| async move {
                upgrade.on_upgrade(move |socket| say(socket, rig))
            }),
        )
        .route(
            "/small",
            any(|upgrade: WebSocketUpgrade| async {
                upgrade.max_message_size(10).on_upgrade(echo)
            }),
        )
        .route("/drops", any(drops))
        .route("/plain", on_get(|| async { "no socket" }))
}

async fn echo(mut socket: WebSocket) {
    while let Some(Ok(message)) = socket.recv().await {
        let is_said = matches!(message, Message::Text(_) | Message::Binary(_));
        if is_said && socket.send(message).await.is_err() {
            return;
        }
    }
}

async fn say(mut socket: WebSocket, rig: Rig) {
    for word in ["one", "two"] {
        rig.released().await;
        socket.send(Message::Text(word.into())).await.unwrap();
    }
    let end = socket.recv().await;
    rig.note(format!("{:?}", end.map(|message| message.is_ok())));
}

async fn drops(upgrade: WebSocketUpgrade) -> Response {
    upgrade.on_upgrade(|socket| async { drop(socket) })
}

/// A case with an upgrade, and these steps after it.
fn upgraded(name: &'static str, target: &str, steps: Vec<Step>) -> Case {
    let upgrade = vec![upgrade(target, &[]), Head];
    Case::steps(name, App::Router(app), [upgrade, steps].concat())
}

fn normal_close() -> Step {
    raw(frame(CLOSE, &1_000_u16.to_be_bytes()))
}

fn frames() -> Vec<Case> {
    vec![
        upgraded(
            "websockets/echo-and-close",
            "/echo",
            vec![
                raw(frame(TEXT, b"hello")),
                Bytes(7),
                raw(frame(BINARY, &[7; 300])),
                Bytes(304),
                normal_close(),
                Bytes(4),
                Ended,
            ],
        ),
        upgraded(
            "websockets/ping",
            "/echo",
            vec![
                raw(frame(PING, b"ping")),
                Bytes(6),
                normal_close(),
                Bytes(4),
                Ended,
            ],
        ),
        upgraded(
            "websockets/fragments",
            "/echo",
            vec![
                raw(frame(0x01, b"hel")),
                raw(frame(PING, b"")),
                Bytes(2),
                raw(frame(0x80, b"lo")),
                Bytes(7),
                normal_close(),
                Bytes(4),
                Ended,
            ],
        ),
    ]
}

fn endings() -> Vec<Case> {
    vec![
        upgraded(
            "websockets/close-with-reason",
            "/echo",
            vec![raw(frame(CLOSE, b"\x03\xe9away")), Bytes(8), Ended],
        ),
        upgraded(
            "websockets/close-without-code",
            "/echo",
            vec![raw(frame(CLOSE, b"")), Bytes(2), Ended],
        ),
        upgraded(
            "websockets/server-speaks",
            "/says",
            vec![
                Release,
                Bytes(5),
                Release,
                Bytes(5),
                normal_close(),
                Note,
                Ended,
            ],
        ),
        upgraded("websockets/server-drops", "/drops", vec![Ended]),
        upgraded(
            "websockets/unmasked",
            "/echo",
            vec![raw(&b"\x81\x05hello"[..]), Ended],
        ),
        upgraded(
            "websockets/bad-utf-8",
            "/echo",
            vec![raw(frame(TEXT, b"\xff")), Ended],
        ),
        upgraded(
            "websockets/too-large",
            "/small",
            vec![raw(frame(TEXT, &[b'x'; 20])), Ended],
        ),
        upgraded(
            "websockets/client-closes",
            "/echo",
            vec![Step::Close, Ended],
        ),
    ]
}

fn handshakes() -> Vec<Case> {
    let mut with_frame = match upgrade("/echo", &[]) {
        Step::Send(bytes) => bytes.to_vec(),
        _ => unreachable!("a request is sent"),
    };
    with_frame.extend_from_slice(&frame(TEXT, b"early"));
    vec![
        Case::steps(
            "websockets/protocol",
            App::Router(app),
            vec![
                upgrade("/chosen", &["Sec-WebSocket-Protocol: v1, v3"]),
                Head,
            ],
        ),
        Case::steps(
            "websockets/no-common-protocol",
            App::Router(app),
            vec![upgrade("/chosen", &["Sec-WebSocket-Protocol: v9"]), Head],
        ),
        Case::steps(
            "websockets/frame-with-the-request",
            App::Router(app),
            vec![raw(with_frame), Head, Bytes(7)],
        ),
        Case::steps(
            "websockets/behind-another-request",
            App::Router(app),
            vec![
                get("/plain"),
                Read,
                upgrade("/echo", &[]),
                Head,
                raw(frame(TEXT, b"hello")),
                Bytes(7),
            ],
        ),
    ]
}

/// Requests that become no `WebSocket`.
fn refused() -> Vec<Case> {
    let one = |name, request| Case::asking(name, App::Router(app), [request]);
    vec![
        one("websockets/not-asked-for", get("/echo")),
        one("websockets/of-a-plain-route", upgrade("/plain", &[])),
        one("websockets/of-nothing", upgrade("/nothing", &[])),
        one(
            "websockets/of-another-protocol",
            ask(
                "GET /plain",
                &[
                    "Connection: Upgrade",
                    "Upgrade: h2c",
                    "HTTP2-Settings: AAMAAABkAAQAAP__",
                ],
                "",
            ),
        ),
        one("websockets/by-post", ask("POST /echo", UPGRADE, "")),
        one(
            "websockets/wrong-version",
            ask(
                "GET /echo",
                &[
                    "Connection: Upgrade",
                    "Upgrade: websocket",
                    "Sec-WebSocket-Version: 12",
                    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
                ],
                "",
            ),
        ),
        one(
            "websockets/without-key",
            ask(
                "GET /echo",
                &[
                    "Connection: Upgrade",
                    "Upgrade: websocket",
                    "Sec-WebSocket-Version: 13",
                ],
                "",
            ),
        ),
        Case::steps(
            "websockets/of-http10",
            App::Router(app),
            vec![
                raw(
                    "GET /echo HTTP/1.0\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                 Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
                ),
                Read,
                End,
            ],
        ),
    ]
}
