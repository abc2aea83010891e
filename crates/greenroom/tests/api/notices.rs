//! Informational responses and the notice of a drain, by extractors, on loops and stages.

use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::response::sse::{Event, Sse};
use axum::routing::{any, get};
use axum::{BoxError, Router};
use futures_util::{Stream, StreamExt, stream};
use greenroom::{Draining, Informational, InformationalError, OnLoops, Placement, Stage};
use http::header::LINK;
use http::{HeaderMap, HeaderValue, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::client_async;
use tokio_tungstenite::tungstenite;

use crate::rig::{Rig, any_port, exchange, http2, within};

const HINT: &str = "HTTP/1.1 103 Early Hints\r\nlink: </style.css>\r\n\r\n";
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n";

fn thread() -> String {
    std::thread::current().name().unwrap_or("?").to_owned()
}

fn hint(informational: &Informational) -> Result<(), InformationalError> {
    let link = HeaderValue::from_static("</style.css>");
    informational.send(
        StatusCode::EARLY_HINTS,
        &HeaderMap::from_iter([(LINK, link)]),
    )
}

/// Sends a hint itself, has a task and a thread send one each, and responds with the thread that it
/// runs on.
async fn hinting(informational: Informational) -> String {
    hint(&informational).unwrap();
    let (of_task, of_thread) = (informational.clone(), informational);
    tokio::spawn(async move { hint(&of_task).unwrap() })
        .await
        .unwrap();
    tokio::task::spawn_blocking(move || hint(&of_thread).unwrap())
        .await
        .unwrap();
    thread()
}

fn app() -> Router {
    Router::new().route("/", get(hinting))
}

async fn assert_hints(server: Rig, thread: &str) {
    let response = exchange(server.address, REQUEST).await;
    let rest = response.strip_prefix(&HINT.repeat(3));
    let rest = rest.unwrap_or_else(|| panic!("{response}"));
    assert!(rest.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
    assert!(rest.contains(&format!("\r\n\r\n{thread}-")), "{response}");
    server.end().await;
}

#[tokio::test]
async fn hints_of_a_handler_on_a_stage_of_its_task_and_of_a_thread() {
    within(async {
        assert_hints(Rig::start(app()), "stage").await;
        let stage = Stage::builder("hinting").build().unwrap();
        let app = app().layer(Placement::on(&stage));
        assert_hints(Rig::start(app), "hinting").await;
    })
    .await;
}

#[tokio::test]
async fn hints_of_a_handler_on_a_loop_of_its_task_and_of_a_thread() {
    within(async { assert_hints(Rig::start(OnLoops(app())), "loop").await }).await;
}

/// Responds with the fate of its hint.
async fn told(informational: Informational) -> String {
    format!("{:?}", hint(&informational))
}

#[tokio::test]
async fn hints_that_cannot_be_sent_are_an_error() {
    within(async {
        for on_loop in [true, false] {
            let app = Router::new().route("/", get(told));
            let server = if on_loop {
                Rig::start(OnLoops(app))
            } else {
                Rig::start(app)
            };
            let response = exchange(server.address, b"GET / HTTP/1.0\r\n\r\n").await;
            assert!(response.ends_with("Err(Now)"), "{response}");
            let url = server.url("/").parse().unwrap();
            let response = http2::<Empty<Bytes>>().get(url).await.unwrap();
            assert_eq!(
                response.into_body().collect().await.unwrap().to_bytes(),
                "Err(Now)"
            );
            server.end().await;
        }
    })
    .await;
}

#[tokio::test]
async fn under_axum_there_are_no_hints_and_no_notice() {
    within(async {
        let handler = |informational: Informational, draining: Draining| async move {
            assert!(!draining.is_draining());
            told(informational).await
        };
        let app = Router::new().route("/", get(handler));
        let listener = TcpListener::bind(any_port()).await.unwrap();
        let address = listener.local_addr().unwrap();
        let serving = tokio::spawn(axum::serve(listener, app).into_future());
        let response = exchange(address, REQUEST).await;
        assert!(response.ends_with("Err(Now)"), "{response}");
        serving.abort();
    })
    .await;
}

/// Events without end, and one that is the last when the server drains.
async fn events(draining: Draining) -> Sse<impl Stream<Item = Result<Event, BoxError>>> {
    let first = stream::once(async { Event::default().data(thread()) });
    let last = stream::once(async { Event::default().event("restart").data("") });
    let events = first.chain(stream::pending());
    Sse::new(events.take_until(draining).chain(last).map(Ok))
}

#[tokio::test]
async fn an_event_stream_ends_with_a_last_event_when_the_server_drains() {
    within(async {
        for (on_loop, thread) in [(true, "loop"), (false, "stage")] {
            let app = Router::new().route("/", get(events));
            let server = if on_loop {
                Rig::start(OnLoops(app))
            } else {
                Rig::start(app)
            };
            let mut stream = TcpStream::connect(server.address).await.unwrap();
            stream
                .write_all(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n")
                .await
                .unwrap();
            let mut begun = Vec::new();
            while !begun.windows(6).any(|six| six == b"data: ") {
                begun.push(stream.read_u8().await.unwrap());
            }
            let handle = server.handle.clone();
            handle.drain();
            let mut rest = String::new();
            stream.read_to_string(&mut rest).await.unwrap();
            assert!(rest.starts_with(thread), "{rest}");
            assert!(rest.contains("event: restart\n"), "{rest}");
            assert!(rest.ends_with("0\r\n\r\n"), "{rest}");
            assert_eq!(server.end().await.aborted, []);
        }
    })
    .await;
}

#[tokio::test]
async fn an_event_stream_over_http2_ends_so_too() {
    within(async {
        let server = Rig::start(Router::new().route("/", get(events)));
        let client = http2::<Empty<Bytes>>();
        let url = server.url("/").parse().unwrap();
        let mut body = client.get(url).await.unwrap().into_body();
        let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert!(first.starts_with(b"data: "), "{first:?}");
        server.handle.drain();
        let rest = body.collect().await.unwrap().to_bytes();
        assert!(rest.starts_with(b"event: restart\n"), "{rest:?}");
        assert_eq!(server.end().await.aborted, []);
    })
    .await;
}

/// Says goodbye with 1012 when the server drains.
async fn converse(mut socket: WebSocket, draining: Draining) {
    draining.await;
    let frame = CloseFrame {
        code: close_code::RESTART,
        reason: "come again".into(),
    };
    socket.send(Message::Close(Some(frame))).await.unwrap();
    while let Some(Ok(_)) = socket.recv().await {}
}

#[tokio::test]
async fn a_websocket_whose_handler_asked_says_goodbye_itself() {
    within(async {
        let upgrade = |upgrade: WebSocketUpgrade, draining: Draining| async {
            upgrade.on_upgrade(|socket| converse(socket, draining))
        };
        let server = Rig::start(Router::new().route("/ws", any(upgrade)));
        let stream = TcpStream::connect(server.address).await.unwrap();
        let url = format!("ws://{}/ws", server.address);
        let (mut socket, _) = client_async(url, stream).await.unwrap();
        server.handle.drain();
        let Some(Ok(tungstenite::Message::Close(Some(frame)))) = socket.next().await else {
            panic!("no close frame with a code");
        };
        assert_eq!(u16::from(frame.code), 1012);
        assert_eq!(frame.reason.as_str(), "come again");
        assert!(socket.next().await.is_none());
        assert_eq!(server.end().await.aborted, []);
    })
    .await;
}
