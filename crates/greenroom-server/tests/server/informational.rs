//! Responses before the response: `103 Early Hints` and others.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use greenroom_server::{InformationalError, RequestBody, RequestHandle};
use http::header::LINK;
use http::{HeaderMap, HeaderValue, Request, StatusCode};
use http_body::Frame;
use tokio::sync::{Notify, mpsc};
use tokio::time::sleep;

use crate::client::{Client, get, post};
use crate::rig::{Reply, Rig, app, local, measure, settle, streamed, text, within};

const HINT: &str = "HTTP/1.1 103 Early Hints\r\nlink: </style.css>\r\n\r\n";

/// The handle of the request whose handler calls this.
fn handle() -> RequestHandle {
    RequestHandle::current().expect("a handler is polled")
}

fn hint_by(handle: &RequestHandle) -> Result<(), InformationalError> {
    let fields = HeaderMap::from_iter([(LINK, HeaderValue::from_static("</style.css>"))]);
    handle.send_informational(StatusCode::EARLY_HINTS, &fields)
}

fn hint() -> Result<(), InformationalError> {
    hint_by(&handle())
}

/// Responds with what became of the hint that it sent.
pub(crate) async fn told(_: Request<RequestBody>) -> Reply {
    Ok(text(match hint() {
        Ok(()) => "sent".to_owned(),
        Err(error) => format!("{error:?}"),
    }))
}

#[tokio::test(start_paused = true)]
async fn a_hint_comes_before_the_response_of_each_request() {
    local(async {
        let server = Rig::start(app(told));
        let mut client = server.connect().await;
        client.send(get("/a") + &get("/b")).await;
        for _ in 0..2 {
            assert_eq!(client.head().await, (103, HINT.to_owned()));
            let response = client.response().await;
            assert_eq!((response.status, response.text()), (200, "sent"));
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_hint_goes_out_while_the_handler_waits() {
    local(async {
        let go_on = Arc::new(Notify::new());
        let waiting = Arc::clone(&go_on);
        let handler = move |_| {
            let waiting = Arc::clone(&waiting);
            async move {
                hint()?;
                waiting.notified().await;
                hint()?;
                waiting.notified().await;
                Ok(text("at last"))
            }
        };
        let server = Rig::start(app(handler));
        let mut client = server.connect().await;
        client.send(get("/")).await;
        for _ in 0..2 {
            assert_eq!(client.head().await, (103, HINT.to_owned()));
            go_on.notify_one();
        }
        assert_eq!(client.response().await.text(), "at last");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_hint_goes_out_while_the_handler_waits_for_the_body() {
    local(async {
        let handler = |request| async {
            hint()?;
            measure(request).await
        };
        let server = Rig::start(app(handler));
        let mut client = server.connect().await;
        client.send(post("/", "Content-Length: 5\r\n")).await;
        assert_eq!(client.head().await, (103, HINT.to_owned()));
        client.send("hello").await;
        assert_eq!(client.response().await.text(), "5");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_after_its_hint_becomes_500() {
    local(async {
        let handler = |_| async {
            hint()?;
            panic!("after the hint")
        };
        let server = Rig::start(app(handler));
        let mut client = server.connect().await;
        client.send(get("/")).await;
        assert_eq!(client.head().await.0, 103);
        assert_eq!(client.response().await.status, 500);
        assert!(client.is_closed().await);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_client_of_http_1_0_gets_none() {
    local(async {
        let server = Rig::start(app(told));
        let mut client = server.connect().await;
        client.send("GET / HTTP/1.0\r\n\r\n").await;
        let response = client.response().await;
        assert_eq!((response.status, response.text()), (200, "Now"));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_asks_for_an_upgrade_gets_none() {
    local(async {
        let server = Rig::start(app(told));
        let mut client = server.connect().await;
        let upgrade = "GET / HTTP/1.1\r\nHost: test\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n";
        client.send(upgrade).await;
        let response = client.response().await;
        assert_eq!((response.status, response.text()), (200, "Now"));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn statuses_of_the_connection_and_final_ones_are_refused() {
    local(async {
        let handler = |_| async {
            let refused = [100, 101, 200, 404].map(|number| {
                let status = StatusCode::from_u16(number).unwrap();
                handle().send_informational(status, &HeaderMap::new())
                    == Err(InformationalError::Status(status))
            });
            Ok(text(format!("{refused:?}")))
        };
        let server = Rig::start(app(handler));
        let response = server.connect().await.get("/").await;
        let all = "[true, true, true, true]";
        assert_eq!((response.status, response.text()), (200, all));
    })
    .await;
}

/// Nothing but the hints wakes the connection, whose handler waits for ever.
#[tokio::test]
async fn hints_come_from_a_spawned_task_and_from_another_thread() {
    within(async {
        let (go_on, waits) = std::sync::mpsc::channel::<()>();
        let waits = Arc::new(Mutex::new(Some(waits)));
        let handler = move |_| {
            let (of_task, of_thread) = (handle(), handle());
            let waits = waits.lock().unwrap().take().unwrap();
            tokio::spawn(async move {
                sleep(Duration::from_millis(10)).await;
                hint_by(&of_task).unwrap();
            });
            std::thread::spawn(move || {
                waits.recv().unwrap();
                hint_by(&of_thread).unwrap();
            });
            std::future::pending()
        };
        let server = Rig::start(app(handler));
        let mut client = server.connect().await;
        client.send(get("/")).await;
        assert_eq!(client.head().await, (103, HINT.to_owned()));
        go_on.send(()).unwrap();
        assert_eq!(client.head().await, (103, HINT.to_owned()));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_handle_sends_nothing_for_another_request_nor_behind_its_response() {
    local(async {
        let (tell, mut kept) = mpsc::unbounded_channel();
        let handler = move |_| {
            let tell = tell.clone();
            async move {
                tell.send(handle()).unwrap();
                let part = async { Ok(Frame::data(Bytes::from_static(b"body"))) };
                Ok(streamed(stream::once(part)))
            }
        };
        let server = Rig::start(app(handler));
        let mut client = server.connect().await;
        let mut earlier = Vec::new();
        for _ in 0..3 {
            client.send(get("/")).await;
            earlier.push(kept.recv().await.unwrap());
            for handle in &earlier {
                assert_eq!(hint_by(handle), Err(InformationalError::Now));
            }
            let response = client.response().await;
            assert_eq!((response.status, response.text()), (200, "body"));
        }
    })
    .await;
}

/// A client whose request gets no response, and the handle of the request.
async fn without_response() -> (Rig, Client, RequestHandle) {
    let (tell, mut kept) = mpsc::unbounded_channel();
    let handler = move |_| {
        tell.send(handle()).unwrap();
        std::future::pending()
    };
    let server = Rig::start(app(handler));
    let mut client = server.connect().await;
    client.send(get("/")).await;
    let handle = kept.recv().await.unwrap();
    (server, client, handle)
}

#[tokio::test(start_paused = true)]
async fn a_handle_of_a_client_that_left_sends_nothing() {
    local(async {
        let (_server, client, handle) = without_response().await;
        assert_eq!(hint_by(&handle), Ok(()));
        drop(client);
        while hint_by(&handle).is_ok() {
            sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(hint_by(&handle), Err(InformationalError::Now));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn only_a_handler_finds_the_handle_of_its_request() {
    local(async {
        let (tell, mut found) = mpsc::unbounded_channel();
        let handler = move |_| {
            let tell = tell.clone();
            async move {
                let of_task = tell.clone();
                let look = || RequestHandle::current().is_some();
                assert!(look());
                tokio::task::spawn_local(async move { of_task.send(look()).unwrap() });
                let part = move || {
                    tell.send(look()).unwrap();
                    Ok(Frame::data(Bytes::from_static(b"body")))
                };
                Ok(streamed(stream::once(async move { part() })))
            }
        };
        let server = Rig::start(app(handler));
        let response = server.connect().await.get("/").await;
        assert_eq!((response.status, response.text()), (200, "body"));
        assert_eq!(found.recv().await, Some(false));
        assert_eq!(found.recv().await, Some(false));
        assert!(RequestHandle::current().is_none());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_cannot_pile_up_hints_without_end() {
    local(async {
        let handler = |_| async {
            let sent = (0..1_000_000).take_while(|_| hint().is_ok()).count();
            assert_eq!(hint(), Err(InformationalError::TooMuch));
            Ok(text(sent.to_string()))
        };
        let server = Rig::start(app(handler));
        let mut client = server.connect().await;
        client.send(get("/")).await;
        let mut hints = 0;
        let response = loop {
            let (status, head) = client.head().await;
            if status != 103 {
                break head;
            }
            hints += 1;
        };
        assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
        assert_eq!(client.read_exactly(4).await, hints.to_string().as_bytes());
        assert!((64 * 1_024..65 * 1_024).contains(&(hints * HINT.len())));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_does_not_have_hints_pile_up() {
    local(async {
        let (_server, _client, handle) = without_response().await;
        let mut sent = 0_usize;
        while hint_by(&handle).is_ok() {
            sent += 1;
            if sent.is_multiple_of(1_000) {
                settle().await;
            }
            assert!(sent < 1_000_000, "hints pile up");
        }
        assert_eq!(hint_by(&handle), Err(InformationalError::TooMuch));
    })
    .await;
}
