//! An application as a route of axum's router.

use std::net::SocketAddr;

use axum::Router;
use axum::routing::get;
use greenroom_psgi::{Gateway, GatewayService};
use http::header::{CONTENT_LENGTH, RETRY_AFTER};
use http::{Method, StatusCode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::load::{Client, until};
use crate::rig::{Rig, Source, text, within};
use crate::streaming::{ENDLESS_EVENTS, TWO_PIECES, ask_and_do_not_read};
use crate::{environment, extensions, operators, sockets};

/// A router in which all paths but `/rust` are the application's.
fn beside(perl: GatewayService) -> Router {
    let rust = || async { "Hello from Rust" };
    Router::new()
        .route("/rust", get(rust))
        .fallback_service(perl)
}

async fn served(text: &str) -> Rig {
    Rig::routed(text, |builder| builder, beside).await
}

fn assert_told(told: &str, lines: &[&str]) {
    for line in lines {
        assert!(told.lines().any(|told| told == *line), "{line}: {told}");
    }
}

#[tokio::test]
async fn a_nested_application_sees_where_it_is() {
    within(async {
        let nested = |perl: GatewayService| {
            Router::new()
                .nest_service("/perl", perl.clone())
                .nest("/of/{tenant}", Router::new().nest_service("/perl", perl))
        };
        let rig = Rig::routed(environment::APP, |builder| builder, nested).await;
        for (path, script_name, path_info) in [
            ("/perl/a%20b", "/perl", "/a b"),
            ("/perl/", "/perl", "/"),
            ("/perl", "/perl", ""),
            ("/of/caf%C3%A9/perl/a", "/of/caf\u{e9}/perl", "/a"),
        ] {
            let told = text(&rig.get(&format!("{path}?c=d")).await);
            let lines = [
                format!("SCRIPT_NAME={script_name}"),
                format!("PATH_INFO={path_info}"),
                format!("REQUEST_URI={path}?c=d"),
                format!("SERVER_PORT={}", rig.address.port()),
                format!("HTTP_HOST={}", rig.address),
            ];
            assert_told(&told, &lines.each_ref().map(String::as_str));
            assert_told(&told, &["QUERY_STRING=c=d", "SERVER_NAME=127.0.0.1"]);
        }
        for path in ["/perlite", "/"] {
            assert_eq!(rig.get(path).await.status(), StatusCode::NOT_FOUND);
        }
        assert_eq!(rig.get("/perl/%00").await.status(), StatusCode::BAD_REQUEST);
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn an_application_has_what_rust_has_not() {
    within(async {
        let mounted = |builder: greenroom_psgi::Builder| builder.mount("/shop");
        let rig = Rig::routed(environment::APP, mounted, beside).await;
        assert_eq!(text(&rig.get("/rust").await), "Hello from Rust");
        let told = text(&rig.get("/shop/cart").await);
        assert_told(&told, &["SCRIPT_NAME=/shop", "PATH_INFO=/cart"]);
        assert_eq!(rig.get("/").await.status(), StatusCode::NOT_FOUND);
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn a_routed_body_comes_and_goes() {
    within(async {
        let app = "sub { my $env = shift; local $/;
            [200, ['Content-Type' => 'text/plain'], [readline $env->{'psgi.input'}]] }";
        let rig = Rig::routed(app, |builder| builder.body_bytes_max(300_000), beside).await;
        for bytes in [1, 70_000, 300_000] {
            let body = "x".repeat(bytes);
            assert_eq!(text(&rig.post("/", body.clone()).await), body);
        }
        let refused = rig.post("/", "x".repeat(300_001)).await;
        assert_eq!(refused.status(), StatusCode::PAYLOAD_TOO_LARGE);
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn a_routed_response_to_head_has_its_length() {
    within(async {
        let rig = served("sub { [200, ['Content-Length' => 5], ['hello']] }").await;
        let response = Client::new(&rig).ask(Method::HEAD, "/").await;
        assert_eq!(response.headers()[CONTENT_LENGTH], "5");
        assert_eq!(text(&response), "");
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn routed_pieces_are_sent_as_they_are_written() {
    within(async {
        let rig = served(TWO_PIECES).await;
        let mut stream = rig.connect().await;
        let asked = b"GET /stream HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
        stream.write_all(asked).await.unwrap();
        let mut first = Vec::new();
        while !first.ends_with(b"\r\n6\r\nfirst\n\r\n") {
            first.push(stream.read_u8().await.unwrap());
        }
        assert_eq!(text(&rig.get("/go-on").await), "done");
        let mut rest = String::new();
        stream.read_to_string(&mut rest).await.unwrap();
        assert_eq!(rest, "7\r\nsecond\n\r\n0\r\n\r\n");
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn a_routed_response_that_breaks_off_is_not_taken_for_a_whole_one() {
    within(async {
        let app =
            r#"sub { sub { my $w = shift->([200, []]); $w->write('half'); die "enough\n" } }"#;
        let rig = served(app).await;
        let response = rig.exchange(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
        assert!(response.contains("half"), "{response}");
        assert!(!response.ends_with("0\r\n\r\n"), "{response}");
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn a_reader_of_a_routed_stream_that_leaves_stops_the_writer() {
    within(async {
        let rig = served(ENDLESS_EVENTS).await;
        let reader = ask_and_do_not_read(&rig).await;
        let mut before = String::new();
        loop {
            // Each response comes after the worker had its chance to write more.
            let now = text(&rig.get("/written").await);
            if now == before && now != "0 0" {
                break;
            }
            before = now;
        }
        drop(reader);
        while text(&rig.get("/written").await).ends_with(" 0") {}
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn a_routed_websocket_is_the_applications() {
    within(async {
        let app = format!("{}{}", sockets::WEBSOCKET, sockets::EVENTS);
        let rig = served(&app).await;
        let mut socket = sockets::open(&rig).await;
        sockets::say(&mut socket, "hello").await;
        assert_eq!(sockets::hear(&mut socket).await, "1: hello");
        assert_eq!(text(&rig.get("/count").await), "1");
        drop(socket);
        while text(&rig.get("/count").await) != "0" {}
        until(|| rig.gateway.status().workers[0].waiting == 0).await;
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn routed_hints_come_before_the_response() {
    within(async {
        let rig = served(extensions::HINTS).await;
        let mut stream = rig.connect().await;
        let asked = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
        stream.write_all(asked).await.unwrap();
        let mut hints = Vec::new();
        while !hints.ends_with(b"\r\n\r\n") {
            hints.push(stream.read_u8().await.unwrap());
        }
        assert!(hints.starts_with(b"HTTP/1.1 103 "), "{hints:?}");
        rig.source.write("app.psgi.go", "");
        let mut response = String::new();
        stream.read_to_string(&mut response).await.unwrap();
        assert!(response.ends_with("\r\n\r\ninformed"), "{response}");
        rig.end().await;
    })
    .await;
}

/// Its clients are refused while its queue is full, and served while the server drains.
#[tokio::test]
async fn a_routed_request_is_refused_or_served_to_its_end() {
    within(async {
        let settings = |builder: greenroom_psgi::Builder| builder.queue_max(1);
        let rig = Rig::routed(operators::WAITS, settings, beside).await;
        let clients = (0..2).map(|_| Client::connected(&rig));
        let clients = futures_util::future::join_all(clients).await;
        let asked = clients
            .into_iter()
            .map(|mut client| tokio::spawn(async move { client.ask(Method::GET, "/").await }));
        let asked: Vec<_> = asked.collect();
        until(|| rig.gateway.status().queue.queue_len == 1).await;
        let refused = rig.get("/").await;
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert!(refused.headers().contains_key(RETRY_AFTER));
        assert_eq!(text(&rig.get("/rust").await), "Hello from Rust");
        let (address, go) = (rig.address, rig.source.file("go"));
        let ended = tokio::spawn(rig.end());
        while TcpStream::connect(address).await.is_ok() {}
        std::fs::write(go, "").unwrap();
        for asked in asked {
            assert_eq!(text(&asked.await.unwrap()), "done");
        }
        assert_eq!(ended.await.unwrap().aborted, []);
    })
    .await;
}

/// Serves a router by axum, and returns what its application is told of a request.
async fn told_under_axum(knows_peer: bool) -> (SocketAddr, String) {
    let source = Source::new(environment::APP);
    let gateway = Gateway::builder(source.app()).workers(1).start().await;
    let gateway = gateway.expect("the application starts");
    let router = Router::new().nest_service("/perl", gateway.service().unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let with_peer = router.clone();
    let serving = tokio::spawn(async move {
        if knows_peer {
            let app = with_peer.into_make_service_with_connect_info::<SocketAddr>();
            axum::serve(listener, app).await
        } else {
            axum::serve(listener, router).await
        }
    });
    let mut stream = TcpStream::connect(address).await.unwrap();
    let client = stream.local_addr().unwrap();
    // As curl offers HTTP/2, also with a body.
    let asked = b"POST /perl/a HTTP/1.1\r\nHost: example.org\r\nConnection: close, Upgrade\r\n\
                  Upgrade: h2c\r\nContent-Length: 8\r\n\r\nthe body";
    stream.write_all(asked).await.unwrap();
    let mut told = String::new();
    stream.read_to_string(&mut told).await.unwrap();
    serving.abort();
    gateway.shutdown().await;
    (client, told)
}

#[tokio::test]
async fn axum_serves_an_application_too() {
    within(async {
        let (client, told) = told_under_axum(true).await;
        let port = format!("REMOTE_PORT={}", client.port());
        let expected = [
            "SCRIPT_NAME=/perl",
            "PATH_INFO=/a",
            "SERVER_NAME=example.org",
            "CONTENT_LENGTH=8",
        ];
        assert_told(&told, &expected);
        assert_told(&told, &["SERVER_PORT=80", "REMOTE_ADDR=127.0.0.1", &port]);
        let (_, told) = told_under_axum(false).await;
        assert_told(&told, &expected);
        assert!(!told.contains("REMOTE_"), "{told}");
    })
    .await;
}
