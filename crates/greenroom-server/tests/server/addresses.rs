//! Limits on what one address may ask for: connections at once, requests a second.

use std::time::Duration;

use bytes::Bytes;
use greenroom_server::{Limits, ServerBuilder};
use http::Request;
use http_body_util::Empty;
use hyper::client::conn::http2;
use hyper_util::rt::TokioIo;
use tokio::task::spawn_local;
use tokio::time::sleep;

use crate::client::{Client, get, post};
use crate::http2::OnThisThread;
use crate::listening::{ANY_PORT, tcp_address};
use crate::over;
use crate::rig::{Rig, app, local, measure, text, within};

const PROXY: &str = "unix";

fn limited(limits: Limits, set: impl FnOnce(ServerBuilder) -> ServerBuilder) -> Rig {
    Rig::with(app(|_| async { Ok(text("ok")) }), |builder| {
        set(builder.limits(limits))
    })
}

fn connections(address_connections_max: usize) -> Limits {
    Limits {
        address_connections_max,
        ..Limits::default()
    }
}

fn requests(address_requests_rate_max: u32, address_requests_burst: u32) -> Limits {
    Limits {
        address_requests_rate_max,
        address_requests_burst,
        ..Limits::default()
    }
}

#[tokio::test]
async fn an_address_has_so_many_connections_and_no_more() {
    within(async {
        let server = greenroom_server::Server::builder()
            .listen(ANY_PORT)
            .limits(connections(2))
            .bind()
            .unwrap();
        let address = tcp_address(&server);
        let handle = server.handle();
        let serving = tokio::spawn(server.serve(app(|_| async { Ok(text("ok")) })));
        let mut kept = [Client::tcp(address).await, Client::tcp(address).await];
        for client in &mut kept {
            assert_eq!(client.get("/").await.status, 200);
        }
        let mut third = Client::tcp(address).await;
        let refused = third.get("/").await;
        assert_eq!((refused.status, refused.closes()), (429, true));
        assert_eq!(refused.field("retry-after"), Some("1"));
        assert!(third.is_closed().await);
        for client in &mut kept {
            assert_eq!(client.get("/").await.status, 200);
        }
        // One that ends makes room, as soon as the server has seen that it ended.
        drop(kept);
        while Client::tcp(address).await.get("/").await.status != 200 {
            sleep(Duration::from_millis(10)).await;
        }
        handle.drain();
        serving.await.unwrap().unwrap();
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn on_a_unix_socket_nobody_is_limited() {
    local(async {
        let limits = Limits {
            address_connections_max: 1,
            ..requests(1, 1)
        };
        let server = limited(limits, |builder| builder);
        let mut clients = [server.connect().await, server.connect().await];
        for client in &mut clients {
            assert_eq!(client.get("/").await.status, 200);
            assert_eq!(client.get("/").await.status, 200);
        }
    })
    .await;
}

fn forwarded(client: &str) -> String {
    get("/").replace(
        "\r\n\r\n",
        &format!("\r\nX-Forwarded-For: {client}\r\n\r\n"),
    )
}

#[tokio::test(start_paused = true)]
async fn requests_are_counted_for_the_client_that_a_trusted_proxy_tells() {
    local(async {
        let proxies = PROXY.parse().unwrap();
        let server = limited(requests(2, 3), |builder| builder.trusted_proxies(proxies));
        let mut proxy = server.connect().await;
        let mut other_proxy = server.connect().await;
        for client in ["203.0.113.7", "2001:db8::1"] {
            for _ in 0..3 {
                proxy.send(forwarded(client)).await;
                assert_eq!(proxy.response().await.status, 200);
            }
            // Whatever connection they come on.
            other_proxy.send(forwarded(client)).await;
            let refused = other_proxy.response().await;
            assert_eq!((refused.status, refused.closes()), (429, false));
            assert_eq!(refused.field("retry-after"), Some("1"));
        }
        // Another address of the same /64.
        proxy.send(forwarded("2001:db8::2")).await;
        assert_eq!(proxy.response().await.status, 429);
        // The proxy's own requests are not counted.
        for _ in 0..9 {
            assert_eq!(proxy.get("/").await.status, 200);
        }
        sleep(Duration::from_millis(500)).await;
        for status in [200, 429] {
            proxy.send(forwarded("203.0.113.7")).await;
            assert_eq!(proxy.response().await.status, status);
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_body_of_a_declined_request_is_passed_over() {
    local(async {
        let proxies = PROXY.parse().unwrap();
        let server = Rig::with(app(measure), |builder| {
            builder.limits(requests(1, 1)).trusted_proxies(proxies)
        });
        let mut client = server.connect().await;
        let fields = "Content-Length: 100000\r\nX-Forwarded-For: 203.0.113.7\r\n";
        let (head, body) = (post("/", fields), vec![b'b'; 100_000]);
        for (wait, status) in [(0, 200), (0, 429), (2, 200)] {
            sleep(Duration::from_secs(wait)).await;
            client.send(&head).await;
            client.send(&body).await;
            let response = client.response().await;
            assert_eq!((response.status, response.closes()), (status, false));
        }
        // Of a body that waits for `100 Continue` nobody knows whether it comes.
        let fields = fields.replace("X-", "Expect: 100-continue\r\nX-");
        client.send(post("/", &fields)).await;
        let response = client.response().await;
        assert_eq!((response.status, response.closes()), (429, true));
        assert!(client.is_closed().await);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn requests_over_http2_and_for_an_upgrade_count_too() {
    local(async {
        let proxies = PROXY.parse().unwrap();
        let server = limited(requests(1, 1), |builder| builder.trusted_proxies(proxies));
        let stream = over::connect(&server.path).await;
        let io = TokioIo::new(stream);
        let (mut send, connection) = http2::handshake(OnThisThread, io).await.unwrap();
        spawn_local(connection);
        for status in [200, 429] {
            let request = Request::get("http://test/").header("x-forwarded-for", "203.0.113.7");
            let request = request.body(Empty::<Bytes>::new()).unwrap();
            let response = send.send_request(request).await.unwrap();
            assert_eq!(response.status(), status);
            assert_eq!(
                response.headers().contains_key("retry-after"),
                status == 429
            );
        }
        let mut upgrading = server.connect().await;
        let upgrade = "\r\nConnection: upgrade\r\nUpgrade: other\r\nX-";
        let request = forwarded("203.0.113.7").replace("\r\nX-", upgrade);
        upgrading.send(request).await;
        assert_eq!(upgrading.response().await.status, 429);
    })
    .await;
}
