//! The pace of a request's body: 10 s of grace, then 1,000 bytes a second, as long as it is the
//! client that is waited for, and the response has not begun.

use std::time::Duration;

use greenroom_server::{BodyPace, RequestBody};
use http_body_util::BodyExt;
use tokio::time::{Instant, sleep, timeout};

use crate::client::{Client, post};
use crate::rig::{Rig, app, assert_elapsed, local, measure, text};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_body_that_never_comes_is_408_after_10_s() {
    local(async {
        let server = Rig::start(app(measure));
        let mut client = server.connect().await;
        client.send(post("/", "Content-Length: 10\r\n")).await;
        let since = Instant::now();
        let response = client.response().await;
        assert_elapsed(since, 10 * SECOND);
        assert_eq!(response.status, 408);
        assert!(response.closes());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn two_thousand_bytes_buy_two_seconds() {
    local(async {
        let server = Rig::start(app(measure));
        let mut client = server.connect().await;
        client.send(post("/", "Content-Length: 9000\r\n")).await;
        let since = Instant::now();
        sleep(5 * SECOND).await;
        client.send(vec![b'b'; 2_000]).await;
        assert_eq!(client.response().await.status, 408);
        assert_elapsed(since, 12 * SECOND);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_byte_a_second_is_too_slow() {
    local(async {
        let server = Rig::start(app(measure));
        let mut client = server.connect().await;
        client.send(post("/", "Content-Length: 900\r\n")).await;
        let since = Instant::now();
        for _ in 0..10 {
            sleep(SECOND).await;
            client.try_send("b").await;
        }
        assert_eq!(client.response().await.status, 408);
        assert_elapsed(since, 10 * SECOND);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn two_thousand_bytes_a_second_are_fine() {
    local(async {
        let server = Rig::start(app(measure));
        let mut client = server.connect().await;
        client.send(post("/", "Content-Length: 60000\r\n")).await;
        for _ in 0..30 {
            sleep(SECOND).await;
            client.send(vec![b'b'; 2_000]).await;
        }
        let response = client.response().await;
        assert_eq!((response.status, response.text()), (200, "60000"));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_slow_application_does_not_make_its_client_late() {
    local(async {
        let server = Rig::start(app(|request| async {
            let mut body = request.into_body();
            let mut bytes = 0;
            while let Some(frame) = body.frame().await {
                bytes += frame?.data_ref().map_or(0, bytes::Bytes::len);
                sleep(20 * SECOND).await;
            }
            Ok(text(bytes.to_string()))
        }));
        let mut client = server.connect().await;
        client.send(post("/", "Content-Length: 400\r\n")).await;
        for _ in 0..4 {
            client.send(vec![b'b'; 100]).await;
            sleep(21 * SECOND).await;
        }
        assert_eq!(client.response().await.text(), "400");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_body_that_the_application_gave_up_is_not_waited_for() {
    local(async {
        let server = Rig::start(app(|request| async {
            let mut body = request.into_body();
            assert!(timeout(SECOND, body.frame()).await.is_err());
            drop(body);
            sleep(60 * SECOND).await;
            Ok(text("without it"))
        }));
        let mut client = server.connect().await;
        client.send(post("/", "Content-Length: 400\r\n")).await;
        let response = client.response().await;
        assert_eq!((response.status, response.text()), (200, "without it"));
    })
    .await;
}

/// Sends a byte a minute, for three hours.
async fn send_slowly(client: &mut Client) {
    for _ in 0..180 {
        sleep(60 * SECOND).await;
        client.send("1\r\nb\r\n").await;
    }
    client.send("0\r\n\r\n").await;
}

#[tokio::test(start_paused = true)]
async fn a_body_may_take_hours_once_its_response_has_begun() {
    local(async {
        let server = Rig::start(app(|request| async {
            let body = request.into_body().map_err(Into::into);
            Ok(http::Response::new(body.boxed_unsync()))
        }));
        let mut client = server.connect().await;
        client
            .send(post("/", "Transfer-Encoding: chunked\r\n"))
            .await;
        send_slowly(&mut client).await;
        let response = client.response().await;
        assert_eq!((response.status, response.body.len()), (200, 180));
        assert_eq!(client.get("/").await.status, 200);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_body_may_take_hours_where_the_route_says_so() {
    local(async {
        let server = Rig::start(app(|request| async {
            request.extensions().get::<BodyPace>().unwrap().lift();
            measure(request).await
        }));
        let mut client = server.connect().await;
        client
            .send(post("/", "Transfer-Encoding: chunked\r\n"))
            .await;
        send_slowly(&mut client).await;
        assert_eq!(client.response().await.text(), "180");
    })
    .await;
}

/// The application waits for the body already when it lifts the limit.
#[tokio::test(start_paused = true)]
async fn the_limit_can_be_lifted_while_the_body_is_waited_for() {
    local(async {
        let server = Rig::start(app(|request: http::Request<RequestBody>| async {
            let pace = request.extensions().get::<BodyPace>().unwrap().clone();
            tokio::spawn(async move {
                sleep(5 * SECOND).await;
                pace.lift();
            });
            measure(request).await
        }));
        let mut client = server.connect().await;
        client.send(post("/", "Content-Length: 4\r\n")).await;
        sleep(3_600 * SECOND).await;
        client.send("late").await;
        assert_eq!(client.response().await.text(), "4");
    })
    .await;
}
