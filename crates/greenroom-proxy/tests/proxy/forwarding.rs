//! The parts of a request that reach the upstream, and those of a response that reach the client.

use axum::Router;
use axum::routing::get as on_get;
use greenroom_proxy::{ForwardedFields, HostHeader, Settings};
use greenroom_server::Server;
use tokio::net::UnixListener;

use crate::rig::{Rig, body_of, get, send, status_of, to, within};
use crate::upstreams::{Scripted, echo, head, start_echo};

fn has_line(told: &str, line: &str) -> bool {
    // Chunks and lines of the head end in `\r`.
    told.lines().any(|told| told.trim_end() == line)
}

#[track_caller]
fn assert_told(told: &str, lines: &[&str]) {
    for line in lines {
        assert!(has_line(told, line), "{line}: {told}");
    }
}

#[tokio::test]
async fn a_target_goes_on_byte_by_byte() {
    within(async {
        let rig = Rig::before([start_echo().await]);
        for path in [
            "/",
            "/a//b/../c%2e%2F%c3?d=%20&e=[1]|{}",
            "/%00",
            "/a;b=c?",
            "//x/y",
        ] {
            let told = rig.get(path, "").await;
            assert_told(&told, &[&format!("GET {path}"), "host: example.org"]);
        }
        let absolute = "GET http://other.example/a?b HTTP/1.1\r\nHost: other.example\r\n\
                        Connection: close\r\n\r\n";
        let told = rig.exchange(absolute).await;
        assert_told(&told, &["GET /a?b", "host: other.example"]);
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn methods_and_the_asterisk_go_on() {
    within(async {
        let upstream = Scripted::start(|_, mut stream| async move {
            while let Some(head) = head(&mut stream).await {
                let response = crate::upstreams::ok(head.lines().next().unwrap());
                let written = tokio::io::AsyncWriteExt::write_all(&mut stream, response.as_bytes());
                written.await.unwrap();
            }
        })
        .await;
        let rig = Rig::before([upstream.address]);
        for line in [
            "OPTIONS * HTTP/1.1",
            "DELETE /a HTTP/1.1",
            "REPORT /%41 HTTP/1.1",
        ] {
            let asked = format!("{line}\r\nHost: a\r\nConnection: close\r\n\r\n");
            assert_eq!(body_of(&rig.exchange(asked).await), line);
        }
        let connect = "CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n";
        assert_eq!(status_of(&rig.exchange(connect).await), 501);
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn a_nested_proxy_keeps_the_path_unless_told_to_strip_it() {
    within(async {
        let address = start_echo().await;
        let nested = |proxy| Router::new().nest_service("/api", proxy);
        let plain = Rig::routed(Server::builder(), to([address]), nested);
        for path in ["/api/a%20b?c", "/api", "/api/"] {
            let told = plain.get(path, "").await;
            assert_told(&told, &[&format!("GET {path}")]);
        }
        plain.end().await;
        let settings = Settings {
            strip_prefix: Some("/api".to_owned()),
            add_prefix: Some("/v1".to_owned()),
            ..to([address])
        };
        let stripped = Rig::routed(Server::builder(), settings, nested);
        for (path, expected) in [("/api/a%20b?c", "/v1/a%20b?c"), ("/api", "/v1/")] {
            let told = stripped.get(path, "").await;
            assert_told(&told, &[&format!("GET {expected}")]);
        }
        assert_eq!(status_of(&stripped.get("/apis", "").await), 404);
        stripped.end().await;
    })
    .await;
}

#[tokio::test]
async fn it_is_one_route_beside_others() {
    within(async {
        let beside = |proxy| {
            let rust = on_get(|| async { "Hello from Rust" });
            Router::new().route("/rust", rust).fallback_service(proxy)
        };
        let rig = Rig::routed(Server::builder(), to([start_echo().await]), beside);
        assert!(rig.get("/rust", "").await.ends_with("Hello from Rust"));
        assert_told(&rig.get("/else", "").await, &["GET /else"]);
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn rfc9110_7_6_1_fields_of_one_connection_end_at_the_proxy() {
    within(async {
        let rig = Rig::before([start_echo().await]);
        let fields = "Connection: X-Mine, keep-alive\r\nX-Mine: 1\r\nKeep-Alive: timeout=5\r\n\
                      Proxy-Connection: keep-alive\r\nTE: trailers, gzip\r\nUpgrade: h2c\r\n\
                      Proxy-Authorization: Basic eA==\r\nX_Under: 1\r\nCookie: a=1\r\n\
                      Cookie: b=2\r\nAccept-Encoding: br\r\n";
        let asked = format!("GET / HTTP/1.1\r\nHost: example.org\r\n{fields}\r\n");
        let told = rig
            .exchange(asked.replace("keep-alive\r\nX-Mine", "close\r\nX-Mine"))
            .await;
        let kept = [
            "x_under: 1",
            "cookie: a=1; b=2",
            "te: trailers",
            "connection: te",
        ];
        assert_told(&told, &kept);
        assert_told(&told, &["accept-encoding: br"]);
        for gone in ["x-mine", "keep-alive:", "proxy-", "upgrade:", "gzip"] {
            assert!(!body_of(&told).contains(gone), "{gone}: {told}");
        }
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn a_response_loses_only_the_fields_of_its_connection() {
    within(async {
        let upstream = Scripted::responds(
            "HTTP/1.1 206 Whatever\r\nConnection: X-Mine\r\nX-Mine: 1\r\nKeep-Alive: timeout=5\r\n\
             Set-Cookie: a=1\r\nSet-Cookie: b=2\r\nETag: \"x\"\r\nContent-Length: 5\r\n\
             Proxy-Authenticate: Basic\r\nX_Under: 1\r\n\r\nhello",
        )
        .await;
        let rig = Rig::before([upstream.address]);
        let response = rig.get("/", "").await;
        let lower = response.to_ascii_lowercase();
        assert_eq!(status_of(&response), 206);
        let lines = [
            "set-cookie: a=1",
            "set-cookie: b=2",
            "content-length: 5",
            "x_under: 1",
        ];
        assert_told(&lower, &lines);
        for gone in ["x-mine", "keep-alive", "proxy-authenticate"] {
            assert!(!lower.contains(gone), "{gone}: {response}");
        }
        assert!(response.ends_with("\r\n\r\nhello"), "{response}");
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn a_response_to_head_and_304_keep_their_length_without_a_body() {
    within(async {
        let upstream = Scripted::start(|_, mut stream| async move {
            while let Some(head) = head(&mut stream).await {
                let status = if head.starts_with("HEAD") {
                    "200 OK"
                } else {
                    "304 Not Modified"
                };
                let response = format!("HTTP/1.1 {status}\r\nContent-Length: 1234\r\n\r\n");
                let written = tokio::io::AsyncWriteExt::write_all(&mut stream, response.as_bytes());
                written.await.unwrap();
            }
        })
        .await;
        let rig = Rig::before([upstream.address]);
        let asked = get("/", "").replacen("GET", "HEAD", 1);
        for asked in [asked, get("/", "If-None-Match: \"a\"\r\n")] {
            let response = rig.exchange(asked).await.to_ascii_lowercase();
            assert_told(&response, &["content-length: 1234"]);
            assert_eq!(body_of(&response), "");
        }
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn upstreams_are_told_of_the_client_by_the_proxy_alone() {
    within(async {
        let address = start_echo().await;
        let invented = "X-Forwarded-For: 198.51.100.1\r\nX-Forwarded-Proto: https\r\n\
                        Forwarded: for=198.51.100.1\r\nX-Real-IP: 198.51.100.1\r\n\
                        X-Forwarded-Host: evil.example\r\n";
        let rig = Rig::before([address]);
        let told = rig.get("/", invented).await;
        assert_told(
            &told,
            &["x-forwarded-proto: http", "x-forwarded-host: example.org"],
        );
        // Without a layer that knows connections nobody knows the client.
        assert!(!told.contains("198.51.100.1"), "{told}");
        rig.end().await;
        let both = Settings {
            forwarded: ForwardedFields::Both,
            ..to([address])
        };
        let trusting = Server::builder().trusted_proxies("127.0.0.1".parse().unwrap());
        let rig = Rig::behind(trusting, both);
        let told = rig.get("/", invented).await;
        assert_told(
            &told,
            &[
                "x-forwarded-for: 198.51.100.1",
                "x-forwarded-proto: https",
                "x-forwarded-host: evil.example",
                "forwarded: for=198.51.100.1;host=\"evil.example\";proto=\"https\"",
            ],
        );
        assert!(!told.contains("x-real-ip"), "{told}");
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn host_may_be_the_upstreams() {
    within(async {
        let address = start_echo().await;
        let settings = Settings {
            host: HostHeader::Upstream,
            ..to([address])
        };
        let rig = Rig::with(settings);
        let told = rig.get("/", "").await;
        assert_told(
            &told,
            &[&format!("host: {address}"), "x-forwarded-host: example.org"],
        );
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn unix_sockets_and_names_are_upstreams_too() {
    within(async {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("api.sock");
        let listener = UnixListener::bind(&path).unwrap();
        tokio::spawn(async move { axum::serve(listener, echo()).await });
        let port = start_echo().await.port();
        for text in [
            format!("unix:{}", path.display()),
            format!("http://localhost:{port}"),
        ] {
            let rig = Rig::with(Settings::new([text.parse().unwrap()]));
            for _ in 0..3 {
                let told = rig.exchange(send("POST", "/a?b", "body")).await;
                assert_told(&told, &["POST /a?b", "host: example.org", "body"]);
            }
            // HTTP/1.0 need not name a host.
            let told = rig.exchange("GET / HTTP/1.0\r\n\r\n").await;
            assert!(told.contains("host: localhost"), "{told}");
            rig.end().await;
        }
    })
    .await;
}

#[tokio::test]
async fn rfc9112_6_bodies_are_framed_anew() {
    within(async {
        let rig = Rig::before([start_echo().await]);
        let chunked = |method: &str| {
            format!(
                "{method} / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\
                 Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
            )
        };
        for method in ["GET", "POST", "PUT"] {
            let told = rig.exchange(chunked(method)).await;
            assert_told(&told, &["abc"]);
        }
        let told = rig.exchange(send("GET", "/", "abc")).await;
        assert_told(&told, &["content-length: 3", "abc"]);
        let told = rig.exchange(send("POST", "/", "")).await;
        assert_told(&told, &["content-length: 0"]);
        assert!(!rig.get("/", "").await.contains("content-length: 0"));
        let served = rig.upstream(0).requests;
        // None of these may reach an upstream that reads it in another way.
        for fields in [
            "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
            "Content-Length: 3\r\nContent-Length: 4\r\n",
            "Transfer-Encoding: chunked, identity\r\n",
            "Transfer-Encoding : chunked\r\n",
            "Content-Length: +3\r\n",
        ] {
            let asked = format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n0\r\n\r\nGET /evil");
            let response = rig.exchange(asked).await;
            assert!(
                matches!(status_of(&response), 400 | 501),
                "{fields}: {response}"
            );
        }
        assert_eq!(rig.upstream(0).requests, served);
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn axum_itself_serves_it_too() {
    within(async {
        let proxy = greenroom_proxy::Proxy::new(to([start_echo().await])).unwrap();
        let router = Router::new().fallback_service(proxy);
        let app = router.into_make_service_with_connect_info::<std::net::SocketAddr>();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, app).await });
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let asked = get("/a", "X-Forwarded-For: 198.51.100.1\r\n");
        tokio::io::AsyncWriteExt::write_all(&mut stream, asked.as_bytes())
            .await
            .unwrap();
        let told = crate::rig::rest(&mut stream).await;
        assert_told(&told, &["GET /a", "x-forwarded-for: 127.0.0.1"]);
    })
    .await;
}

#[tokio::test]
async fn rfc9110_7_6_3_via_names_the_protocol_that_was_received() {
    within(async {
        let rig = Rig::before([start_echo().await]);
        for (version, protocol) in [("HTTP/1.0", "1.0"), ("HTTP/1.1", "1.1")] {
            let asked = get("/", "Via: 1.0 fred\r\n").replace("HTTP/1.1", version);
            let told = rig.exchange(asked).await;
            assert_told(&told, &["via: 1.0 fred"]);
            let own = format!("\nvia: {protocol} greenroom-");
            assert_eq!(told.matches(&own).count(), 1, "{version}: {told}");
        }
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn requests_of_http2_become_such_of_http1() {
    within(async {
        let rig = Rig::before([start_echo().await]);
        let (client, connection) = h2::client::handshake(rig.connect().await).await.unwrap();
        tokio::spawn(connection);
        let mut client = client.ready().await.unwrap();
        let request = http::Request::post("http://example.org/a?b")
            .header("cookie", "a=1")
            .header("cookie", "b=2")
            .body(())
            .unwrap();
        let (response, mut sending) = client.send_request(request, false).unwrap();
        sending.send_data("body".into(), true).unwrap();
        let mut body = response.await.unwrap().into_body();
        let mut told = Vec::new();
        while let Some(part) = body.data().await {
            told.extend_from_slice(&part.unwrap());
        }
        let told = String::from_utf8(told).unwrap();
        assert_told(&told, &["POST /a?b", "host: example.org", "body"]);
        assert_told(&told, &["x-forwarded-host: example.org"]);
        assert_told(&told, &["cookie: a=1; b=2"]);
        assert!(told.contains("\nvia: 2 greenroom-"), "{told}");
        rig.end().await;
    })
    .await;
}
