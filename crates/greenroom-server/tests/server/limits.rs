//! Limits on what a request may be, and the status of whoever exceeds them.

use greenroom_server::{App, BodyError, Limits};
use http::StatusCode;
use http_body_util::BodyExt;

use crate::client::{get, post};
use crate::rig::{Rig, app, local, measure, text};

/// Sends `head` to a server with default limits whose handler must not run.
async fn refused(head: String, status: u16) {
    local(async {
        let server = Rig::start(app(|_| async { panic!("a refused request was served") }));
        let mut client = server.connect().await;
        client.try_send(head).await;
        let response = client.response().await;
        assert_eq!(response.status, status, "{}", response.head);
        assert!(response.closes());
        assert!(client.is_closed().await);
    })
    .await;
}

fn head_of(bytes: usize) -> String {
    let start = "GET / HTTP/1.1\r\nHost: test\r\nX-Long: ";
    let filler = "x".repeat(bytes - start.len() - 4);
    format!("{start}{filler}\r\n\r\n")
}

fn with_fields(fields: usize) -> String {
    let more = (1..fields).map(|number| format!("X-{number}: y\r\n"));
    let more: String = more.collect();
    format!("GET / HTTP/1.1\r\nHost: test\r\n{more}\r\n")
}

async fn served(head: String) {
    local(async {
        let server = Rig::start(app(|_| async { Ok(text("ok")) }));
        let mut client = server.connect().await;
        client.send(head).await;
        assert_eq!(client.response().await.status, 200);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_head_of_64_kib_is_served_and_one_byte_more_is_431() {
    served(head_of(65_536)).await;
    refused(head_of(65_537), 431).await;
    refused(head_of(300_000), 431).await;
}

#[tokio::test(start_paused = true)]
async fn a_hundred_fields_are_served_and_one_more_is_431() {
    served(with_fields(100)).await;
    refused(with_fields(101), 431).await;
}

#[tokio::test(start_paused = true)]
async fn a_target_of_8_kib_is_served_and_one_byte_more_is_414() {
    served(get(&format!("/{}", "t".repeat(8_191)))).await;
    refused(get(&format!("/{}", "t".repeat(8_192))), 414).await;
}

/// The cap on bodies of the servers of these tests, which by default is none.
const CAP: usize = 2_097_152;

fn capped(app: impl App) -> Rig {
    let limits = Limits {
        body_bytes_max: CAP as u64,
        ..Limits::default()
    };
    Rig::with(app, |builder| builder.limits(limits))
}

#[tokio::test(start_paused = true)]
async fn a_body_over_the_cap_by_its_length_is_413_before_any_of_it_comes() {
    local(async {
        let server = capped(app(measure));
        let mut client = server.connect().await;
        client.send(post("/", "Content-Length: 2097153\r\n")).await;
        let response = client.response().await;
        assert_eq!(response.status, 413);
        assert!(response.closes());
        assert!(client.is_closed().await);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_body_of_the_cap_is_served() {
    local(async {
        let server = capped(app(measure));
        let mut client = server.connect().await;
        client.send(post("/", "Content-Length: 2097152\r\n")).await;
        client.send(vec![b'b'; CAP]).await;
        assert_eq!(client.response().await.text(), "2097152");
        assert_eq!(client.get("/").await.text(), "0");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn without_a_cap_a_body_may_have_any_length() {
    local(async {
        let server = Rig::start(app(measure));
        let mut client = server.connect().await;
        client.send(post("/", "Content-Length: 9000000\r\n")).await;
        client.send(vec![b'b'; 9_000_000]).await;
        assert_eq!(client.response().await.text(), "9000000");
        client
            .send(post("/", "Transfer-Encoding: chunked\r\n"))
            .await;
        client.send(chunks(9_000_000)).await;
        assert_eq!(client.response().await.text(), "9000000");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_body_over_the_cap_that_nobody_reads_gets_a_response_and_the_connection_closes() {
    local(async {
        let server = capped(app(|_| async { Ok(text("no need")) }));
        let mut client = server.connect().await;
        client.send(post("/", "Content-Length: 9000000\r\n")).await;
        let response = client.response().await;
        assert_eq!((response.status, response.text()), (200, "no need"));
        assert!(response.closes());
        client.try_send(vec![b'b'; 9_000_000]).await;
        assert!(client.is_closed().await);
    })
    .await;
}

fn chunks(bytes: usize) -> Vec<u8> {
    let mut body = Vec::new();
    for at in (0..bytes).step_by(10_000) {
        let length = (bytes - at).min(10_000);
        body.extend_from_slice(format!("{length:x}\r\n").as_bytes());
        body.resize(body.len() + length, b'c');
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b"0\r\n\r\n");
    body
}

#[tokio::test(start_paused = true)]
async fn a_chunked_body_that_grows_over_the_cap_is_413() {
    local(async {
        let server = capped(app(measure));
        let mut client = server.connect().await;
        let head = post("/", "Transfer-Encoding: chunked\r\n");
        client.send(&head).await;
        client.send(chunks(CAP)).await;
        assert_eq!(client.response().await.text(), "2097152");
        client.send(&head).await;
        client.try_send(chunks(CAP + 1)).await;
        let response = client.response().await;
        assert_eq!(response.status, 413);
        assert!(client.is_closed().await);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_application_responds_itself_to_a_body_over_the_cap() {
    local(async {
        let server = capped(app(|request| async {
            let error = request.into_body().collect().await.unwrap_err();
            assert_eq!(error, BodyError::TooLarge);
            let mut response = text("the application's");
            *response.status_mut() = StatusCode::IM_A_TEAPOT;
            Ok(response)
        }));
        let sent = CAP + 1;
        for (field, body) in [
            (format!("Content-Length: {sent}\r\n"), vec![b'b'; sent]),
            ("Transfer-Encoding: chunked\r\n".to_owned(), chunks(sent)),
        ] {
            let mut client = server.connect().await;
            client.send(post("/", &field)).await;
            client.try_send(body).await;
            let response = client.response().await;
            let said = (response.status, response.text());
            assert_eq!(said, (418, "the application's"), "{field}");
            assert!(response.closes());
            assert!(client.is_closed().await);
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn limits_are_settings() {
    local(async {
        let limits = Limits {
            body_bytes_max: 5,
            ..Limits::default()
        };
        let server = Rig::with(app(measure), |builder| builder.limits(limits));
        let mut client = server.connect().await;
        client
            .send(post("/", "Content-Length: 5\r\n") + "12345")
            .await;
        assert_eq!(client.response().await.text(), "5");
        client
            .send(post("/", "Content-Length: 6\r\n") + "123456")
            .await;
        assert_eq!(client.response().await.status, 413);
    })
    .await;
}
