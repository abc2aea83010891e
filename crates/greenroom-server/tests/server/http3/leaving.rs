use bytes::Bytes;
use greenroom_server::Limits;
use http::Request;
use tokio::time::{Instant, sleep};

use super::rig::{Rig, receive, uri};
use super::{SECOND, handler};
use crate::rig::{app, assert_elapsed, local};

#[tokio::test(start_paused = true)]
async fn a_drain_finishes_streams_and_takes_no_more() {
    local(async {
        let server = Rig::start(app(handler));
        let client = server.connect().await;
        assert_eq!(client.get("/before").await.1, "/before");
        let head = Request::get(uri("/5")).body(()).unwrap();
        let mut stream = client.begin(head).await.unwrap();
        stream.finish().await.unwrap();
        sleep(SECOND).await;
        let since = Instant::now();
        server.handle.drain();
        sleep(2 * SECOND).await;
        let late = Request::get(uri("/late")).body(Bytes::new()).unwrap();
        let error = client.try_ask(late).await.err();
        let error = error.expect("the GOAWAY was read").to_string();
        assert!(error.contains("closing"), "{error}");
        let response = receive(&mut stream).await.unwrap();
        assert_eq!(response.text(), "done");
        assert_elapsed(since, 4 * SECOND);
        assert!(client.driver.await.unwrap().is_h3_no_error());
        assert!(server.ended().await.aborted.is_empty());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_on_its_way_at_a_drain_is_served() {
    local(async {
        let server = Rig::start(app(handler));
        let client = server.connect().await;
        assert_eq!(client.get("/before").await.1, "/before");
        server.handle.drain();
        assert_eq!(client.get("/after").await.1, "/after");
        assert!(client.driver.await.unwrap().is_h3_no_error());
        assert!(server.ended().await.aborted.is_empty());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_drain_aborts_and_reports_what_is_under_way() {
    local(async {
        let limits = Limits {
            drain_deadline: 3 * SECOND,
            ..Limits::default()
        };
        let server = Rig::limited(app(handler), limits);
        let client = server.connect().await;
        let head = Request::get(uri("/never")).body(()).unwrap();
        let mut stream = client.begin(head).await.unwrap();
        stream.finish().await.unwrap();
        sleep(SECOND).await;
        let peer = client.endpoint.local_addr().unwrap();
        server.handle.drain();
        assert!(stream.recv_response().await.is_err());
        let report = server.ended().await;
        assert_eq!(report.aborted.len(), 1);
        assert_eq!(report.aborted[0].route, "GET /never");
        assert_eq!(report.aborted[0].peer, Some(peer));
    })
    .await;
}
