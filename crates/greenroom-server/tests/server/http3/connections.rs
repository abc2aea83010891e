use std::cell::Cell;
use std::net::UdpSocket;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use greenroom_server::{App, ConnectionInfo, Limits, RequestBody, Server};
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};
use tokio_rustls::TlsConnector;
use tower::util::service_fn;

use super::rig::{Client, Rig, client, uri};
use super::{SECOND, handler};
use crate::over::{NAME, client_config};
use crate::rig::{Reply, app, assert_elapsed, local, measure, text, within};

/// Tells of each request what is known of its connection.
#[derive(Clone)]
pub(super) struct Telling;

impl App for Telling {
    type Body = Full<Bytes>;
    type Service = tower::util::BoxCloneService<
        Request<RequestBody>,
        Response<Full<Bytes>>,
        std::convert::Infallible,
    >;

    fn connect(&self, info: &ConnectionInfo) -> Self::Service {
        let tls = info.tls.as_deref().unwrap();
        let told = format!(
            "{} {} {} {} certificates:{}",
            info.peer.unwrap().ip(),
            tls.version(),
            tls.server_name().unwrap(),
            String::from_utf8_lossy(tls.alpn_protocol().unwrap()),
            tls.client_certificates().len(),
        );
        tower::util::BoxCloneService::new(service_fn(move |request: Request<RequestBody>| {
            let told = format!("{:?} {} {told}", request.version(), request.uri());
            async move { Ok(Response::new(Full::from(told))) }
        }))
    }
}

#[tokio::test]
async fn an_application_is_told_of_the_request_and_its_connection() {
    within(async {
        let server = Rig::start(Telling);
        let client = server.connect().await;
        let told = client.get("/path?query").await.1;
        let expected = "HTTP/3.0 https://server.test/path?query 127.0.0.1 TLSv1.3 server.test h3 \
            certificates:0";
        assert_eq!(told, expected);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn many_streams_are_served_at_once() {
    local(async {
        let server = Rig::start(app(handler));
        let client = server.connect().await;
        let since = Instant::now();
        let paths: Vec<_> = (0..50).map(|number| format!("/path/{number}")).collect();
        let slow = join_all((0..50).map(|_| client.get("/5")));
        let fast = async {
            let fast = join_all(paths.iter().map(|path| client.get(path))).await;
            (fast, since.elapsed())
        };
        let (slow, (fast, took)) = tokio::join!(slow, fast);
        assert!(slow.iter().all(|(_, body)| body == "done"));
        for (path, (status, body)) in paths.iter().zip(fast) {
            assert_eq!((status, &body), (StatusCode::OK, path));
        }
        assert!(took < 2 * SECOND, "{took:?}");
    })
    .await;
}

#[tokio::test]
async fn a_panic_is_500_and_the_connection_goes_on() {
    within(async {
        let server = Rig::start(app(handler));
        let client = server.connect().await;
        assert_eq!(client.get("/panic").await.0, 500);
        assert_eq!(client.get("/still").await.1, "/still");
    })
    .await;
}

#[tokio::test]
async fn a_client_may_come_to_another_address() {
    within(async {
        let server = Rig::start(app(handler));
        let client = server.connect().await;
        assert_eq!(client.get("/before").await.1, "/before");
        let before = client.endpoint.local_addr().unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        client.endpoint.rebind(socket).unwrap();
        assert_ne!(client.endpoint.local_addr().unwrap(), before);
        let body = Bytes::from(vec![b'b'; 1_000_000]);
        assert_eq!(client.post("/measure", body).await.1, "1000000");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_ends_after_its_time_and_one_without_a_request_sooner() {
    local(async {
        let server = Rig::start(app(handler));
        let idle = server.connect().await;
        assert_eq!(idle.get("/").await.0, 200);
        let since = Instant::now();
        let silent = server.connect().await;
        let error = silent.driver.await.unwrap();
        assert!(error.is_h3_no_error(), "{error}");
        // The GOAWAY comes a second before.
        assert_elapsed(since, 11 * SECOND);
        let error = idle.driver.await.unwrap();
        assert!(error.is_h3_no_error(), "{error}");
        assert_elapsed(since, 76 * SECOND);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_request_may_take_longer_than_a_connection_may_be_idle() {
    local(async {
        let server = Rig::start(app(|_| async {
            sleep(300 * SECOND).await;
            Ok(text("late"))
        }));
        let client = server.connect().await;
        assert_eq!(client.get("/").await.1, "late");
    })
    .await;
}

#[tokio::test]
async fn without_memory_requests_are_declined_with_503() {
    within(async {
        let limits = Limits {
            memory_max: 200_000,
            ..Limits::default()
        };
        let server = Rig::limited(app(handler), limits);
        let client = server.connect().await;
        assert_eq!(client.get("/before").await.0, 200);
        // Its window may be used up: 256 KiB.
        let head = Request::post(uri("/measure")).body(()).unwrap();
        let mut stream = client.begin(head).await.unwrap();
        while client.get("/first").await.0 != 503 {}
        stream.send_data(Bytes::from("content")).await.unwrap();
        stream.finish().await.unwrap();
        let response = super::rig::receive(&mut stream).await.unwrap();
        assert_eq!(response.text(), "7");
        while client.get("/after").await.0 != 200 {}
    })
    .await;
}

#[tokio::test]
async fn an_address_has_no_more_connections_nor_requests_than_allowed() {
    within(async {
        let limits = Limits {
            address_connections_max: 1,
            address_requests_rate_max: 1,
            address_requests_burst: 2,
            ..Limits::default()
        };
        let server = Rig::limited(app(handler), limits);
        let first = server.connect().await;
        assert_eq!(first.get("/1").await.0, 200);
        assert_eq!(first.get("/2").await.0, 200);
        assert_eq!(first.get("/3").await.0, 429);
        let second = Client::connect(server.address, client()).await;
        if let Ok(second) = second {
            let closed = second.connection.closed().await.to_string();
            assert!(closed.contains("263"), "H3_EXCESSIVE_LOAD: {closed}");
        }
    })
    .await;
}

#[tokio::test]
async fn responses_over_tcp_tell_of_http_3_and_over_quic_they_do_not() {
    within(async {
        let server = Rig::start(app(|request: Request<RequestBody>| async move {
            let own = request.uri().path() == "/own";
            let mut response = measure(request).await?;
            if own {
                let clear = http::HeaderValue::from_static("clear");
                response.headers_mut().insert("alt-svc", clear);
            }
            Ok(response)
        }));
        let port = server.address.port();
        let connector = TlsConnector::from(std::sync::Arc::new(client_config()));
        for (path, told) in [
            ("/", format!("alt-svc: h3=\":{port}\"; ma=86400\r\n")),
            ("/own", "alt-svc: clear\r\n".to_owned()),
        ] {
            let stream = TcpStream::connect(server.address).await.unwrap();
            let name = rustls::pki_types::ServerName::try_from(NAME).unwrap();
            let mut stream = connector.connect(name, stream).await.unwrap();
            let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut response = String::new();
            stream.read_to_string(&mut response).await.unwrap();
            assert!(response.to_lowercase().contains(&told), "{response}");
        }
        let client = server.connect().await;
        let request = Request::get(uri("/")).body(Bytes::new()).unwrap();
        let response = client.ask(request).await;
        assert!(!response.head.headers().contains_key("alt-svc"));
    })
    .await;
}

#[tokio::test]
async fn http_3_is_told_of_over_http_2() {
    within(async {
        let server = Rig::start(app(handler));
        let mut tls = client_config();
        tls.alpn_protocols = vec![b"h2".to_vec()];
        let connector = TlsConnector::from(std::sync::Arc::new(tls));
        let stream = TcpStream::connect(server.address).await.unwrap();
        let name = rustls::pki_types::ServerName::try_from(NAME).unwrap();
        let stream = connector.connect(name, stream).await.unwrap();
        let (send, connection) = h2::client::handshake(stream).await.unwrap();
        tokio::task::spawn_local(connection);
        let request = Request::get(uri("/")).body(()).unwrap();
        let (response, _) = send
            .ready()
            .await
            .unwrap()
            .send_request(request, true)
            .unwrap();
        let told = response.await.unwrap().headers()["alt-svc"].clone();
        assert_eq!(told, format!("h3=\":{}\"; ma=86400", server.address.port()));
    })
    .await;
}

#[test]
fn http_3_without_tls_is_an_error_that_says_so() {
    let plain = Server::builder().listen("127.0.0.1:0").http3(true).bind();
    let error = plain.unwrap_err().to_string();
    assert!(error.contains("HTTP/3 needs TLS"), "{error}");
    let tls = crate::over::tls().build().unwrap();
    let builder = Server::builder().listen_plain("127.0.0.1:0").tls(tls);
    let error = builder.http3(true).bind().unwrap_err().to_string();
    assert!(error.contains("HTTP/3 needs TLS"), "{error}");
}

#[tokio::test]
async fn handshakes_under_way_do_not_make_more_connections_than_allowed() {
    within(async {
        const CLIENTS: usize = 8;
        const CONNECTIONS: usize = 2;
        static BEGUN: AtomicUsize = AtomicUsize::new(0);
        let limits = Limits {
            connections_max: CONNECTIONS,
            ..Limits::default()
        };
        let never = |_| async {
            BEGUN.fetch_add(1, Ordering::Relaxed);
            std::future::pending::<Reply>().await
        };
        let server = Rig::limited(app(never), limits);
        let closed = Rc::new(Cell::new(0));
        for _ in 0..CLIENTS {
            let closed = Rc::clone(&closed);
            let connecting = Client::connect(server.address, client());
            tokio::task::spawn_local(async move {
                if let Ok(client) = connecting.await {
                    let asking = client.try_ask(Request::get(uri("/")).body(Bytes::new()).unwrap());
                    assert!(asking.await.is_err());
                }
                closed.set(closed.get() + 1);
            });
        }
        while BEGUN.load(Ordering::Relaxed) + closed.get() < CLIENTS {
            tokio::task::yield_now().await;
        }
        assert!(BEGUN.load(Ordering::Relaxed) <= CONNECTIONS);
    })
    .await;
}

#[tokio::test]
async fn two_loops_share_the_connections() {
    within(async {
        let server = Rig::with(app(handler), |builder| builder.loops(2.try_into().unwrap()));
        let clients = join_all((0..6).map(|_| server.connect())).await;
        let responses = join_all(clients.iter().map(|client| client.get("/both"))).await;
        assert!(responses.iter().all(|(_, body)| body == "/both"));
        tokio::time::timeout(Duration::from_mins(1), async {
            while server
                .handle
                .loops()
                .iter()
                .any(|each| each.connections != 3)
            {
                tokio::task::yield_now().await;
            }
        })
        .await
        .unwrap();
    })
    .await;
}
