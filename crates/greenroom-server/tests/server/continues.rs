//! `Expect: 100-continue`.

use greenroom_server::Limits;

use crate::client::{get, post};
use crate::rig::{Rig, app, local, measure, text};

const EXPECTING: &str = "Content-Length: 5\r\nExpect: 100-continue\r\n";

#[tokio::test(start_paused = true)]
async fn the_client_is_told_to_go_on_when_the_application_asks_for_the_body() {
    local(async {
        let server = Rig::start(app(measure));
        let mut client = server.connect().await;
        for _ in 0..2 {
            client.send(post("/", EXPECTING)).await;
            assert_eq!(
                client.head().await,
                (100, "HTTP/1.1 100 Continue\r\n\r\n".to_owned())
            );
            client.send("hello").await;
            let response = client.response().await;
            assert_eq!((response.status, response.text()), (200, "5"));
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_client_whose_body_nobody_asks_for_gets_its_response_and_the_end() {
    local(async {
        let server = Rig::start(app(|_| async { Ok(text("no need")) }));
        let mut client = server.connect().await;
        client.send(post("/", EXPECTING)).await;
        let response = client.response().await;
        assert_eq!((response.status, response.text()), (200, "no need"));
        assert!(response.closes());
        assert!(client.is_closed().await);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_did_not_wait_is_not_told_to_go_on() {
    local(async {
        let server = Rig::start(app(measure));
        let mut client = server.connect().await;
        client
            .send(post("/", EXPECTING) + "hello" + &get("/"))
            .await;
        assert_eq!(client.response().await.text(), "5");
        assert_eq!(client.response().await.text(), "0");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_client_whose_body_is_over_the_cap_is_not_told_to_go_on() {
    local(async {
        let limits = Limits {
            body_bytes_max: 1_000_000,
            ..Limits::default()
        };
        let server = Rig::with(app(measure), |builder| builder.limits(limits));
        let mut client = server.connect().await;
        let fields = "Content-Length: 9000000\r\nExpect: 100-continue\r\n";
        client.send(post("/", fields)).await;
        let response = client.response().await;
        assert_eq!(response.status, 413);
        assert!(client.is_closed().await);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn another_expectation_is_417() {
    local(async {
        let server = Rig::start(app(measure));
        let mut client = server.connect().await;
        client
            .send(post("/", "Content-Length: 5\r\nExpect: miracles\r\n"))
            .await;
        assert_eq!(client.response().await.status, 417);
    })
    .await;
}
