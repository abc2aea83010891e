//! Answers before the answer: `103 Early Hints` and others.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;
use greenroom_server::{NotPossible, RequestBody, send_informational};
use http::header::LINK;
use http::{HeaderMap, HeaderValue, Request, StatusCode};
use http_body::Frame;
use tokio::sync::{Notify, mpsc};

use crate::client::{get, post};
use crate::rig::{Reply, Rig, app, local, measure, streamed, text};

const HINT: &str = "HTTP/1.1 103 Early Hints\r\nlink: </style.css>\r\n\r\n";

fn hint() -> Result<(), NotPossible> {
    let fields = HeaderMap::from_iter([(LINK, HeaderValue::from_static("</style.css>"))]);
    send_informational(StatusCode::EARLY_HINTS, &fields)
}

/// Answers with what became of the hint that it sent.
pub(crate) async fn told(_: Request<RequestBody>) -> Reply {
    Ok(text(match hint() {
        Ok(()) => "sent".to_owned(),
        Err(error) => format!("{error:?}"),
    }))
}

#[tokio::test(start_paused = true)]
async fn a_hint_comes_before_the_answer_of_each_request() {
    local(async {
        let server = Rig::start(app(told));
        let mut client = server.connect().await;
        client.send(get("/a") + &get("/b")).await;
        for _ in 0..2 {
            assert_eq!(client.head().await, (103, HINT.to_owned()));
            let answer = client.answer().await;
            assert_eq!((answer.status, answer.text()), (200, "sent"));
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
        assert_eq!(client.answer().await.text(), "at last");
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
        assert_eq!(client.answer().await.text(), "5");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_after_its_hint_is_answered_with_500() {
    local(async {
        let handler = |_| async {
            hint()?;
            panic!("after the hint")
        };
        let server = Rig::start(app(handler));
        let mut client = server.connect().await;
        client.send(get("/")).await;
        assert_eq!(client.head().await.0, 103);
        assert_eq!(client.answer().await.status, 500);
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
        let answer = client.answer().await;
        assert_eq!((answer.status, answer.text()), (200, "Now"));
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
        let answer = client.answer().await;
        assert_eq!((answer.status, answer.text()), (200, "Now"));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn statuses_of_the_connection_and_final_ones_are_refused() {
    local(async {
        let handler = |_| async {
            let refused = [100, 101, 200, 404].map(|number| {
                let status = StatusCode::from_u16(number).unwrap();
                send_informational(status, &HeaderMap::new()) == Err(NotPossible::Status(status))
            });
            Ok(text(format!("{refused:?}")))
        };
        let server = Rig::start(app(handler));
        let answer = server.connect().await.get("/").await;
        let all = "[true, true, true, true]";
        assert_eq!((answer.status, answer.text()), (200, all));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn nobody_sends_a_hint_outside_of_a_handler() {
    local(async {
        let (tell, mut tries) = mpsc::unbounded_channel();
        let handler = move |_| {
            let tell = tell.clone();
            async move {
                let of_task = tell.clone();
                tokio::task::spawn_local(async move { of_task.send(hint()).unwrap() });
                let part = move || {
                    tell.send(hint()).unwrap();
                    Ok(Frame::data(Bytes::from_static(b"body")))
                };
                Ok(streamed(stream::once(async move { part() })))
            }
        };
        let server = Rig::start(app(handler));
        let answer = server.connect().await.get("/").await;
        assert_eq!((answer.status, answer.text()), (200, "body"));
        assert_eq!(tries.recv().await, Some(Err(NotPossible::Now)));
        assert_eq!(tries.recv().await, Some(Err(NotPossible::Now)));
        assert_eq!(hint(), Err(NotPossible::Now));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_cannot_pile_up_hints_without_end() {
    local(async {
        let handler = |_| async {
            let sent = (0..1_000_000).take_while(|_| hint().is_ok()).count();
            assert_eq!(hint(), Err(NotPossible::TooMuch));
            Ok(text(sent.to_string()))
        };
        let server = Rig::start(app(handler));
        let mut client = server.connect().await;
        client.send(get("/")).await;
        let mut hints = 0;
        let answer = loop {
            let (status, head) = client.head().await;
            if status != 103 {
                break head;
            }
            hints += 1;
        };
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        assert_eq!(client.read_exactly(4).await, hints.to_string().as_bytes());
        assert!((64 * 1_024..65 * 1_024).contains(&(hints * HINT.len())));
    })
    .await;
}
