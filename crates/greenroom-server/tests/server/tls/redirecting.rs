use greenroom_server::{Address, Limits};
use http::Response;
use http::header::STRICT_TRANSPORT_SECURITY;
use tempfile::TempDir;
use tokio::io::AsyncReadExt;

use super::handshakes::connect;
use crate::client::{Client, get};
use crate::over::{client_config, tls};
use crate::rig::{Rig, app, text, within};

/// A server with TLS, and with an address that sends clients on.
fn start() -> (Rig, Address, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("redirecting.sock");
    let redirecting = Address::Unix(path);
    let address = redirecting.clone();
    let handler = app(async |request: http::Request<_>| {
        let mut response: Response<_> = text("here");
        if request.uri().path() == "/own" {
            let own = http::HeaderValue::from_static("max-age=0");
            response
                .headers_mut()
                .insert(STRICT_TRANSPORT_SECURITY, own);
        }
        Ok(response)
    });
    let server = Rig::with(handler, |builder| {
        builder
            .tls(tls().build().unwrap())
            .listen_redirecting(redirecting)
    });
    (server, address, directory)
}

async fn client(address: &Address) -> Client {
    let Address::Unix(path) = address else {
        panic!("{address}");
    };
    Client::over(tokio::net::UnixStream::connect(path).await.unwrap())
}

#[tokio::test]
async fn clients_without_tls_are_sent_on() {
    within(async {
        let (_server, address, _directory) = start();
        let mut client = client(&address).await;
        for (request, location) in [
            (get("/a?b=c"), "https://test/a?b=c"),
            (
                get("/").replace("Host: test", "Host: example.org:8080"),
                "https://example.org/",
            ),
            (
                get("/").replace("Host: test", "Host: [::1]:80"),
                "https://[::1]/",
            ),
            (
                "POST /form HTTP/1.1\r\nHost: test\r\nContent-Length: 3\r\n\r\na=b".to_owned(),
                "https://test/form",
            ),
            (
                "GET /chat HTTP/1.1\r\nHost: test\r\nUpgrade: websocket\r\n\
                    Connection: upgrade\r\n\r\n"
                    .to_owned(),
                "https://test/chat",
            ),
        ] {
            client.send(&request).await;
            let response = client.response().await;
            assert_eq!(response.status, 308, "{request}");
            assert_eq!(response.field("location"), Some(location));
            assert_eq!(response.text(), "");
        }
    })
    .await;
}

#[tokio::test]
async fn who_asks_too_often_is_not_sent_on() {
    within(async {
        let directory = tempfile::tempdir().unwrap();
        let address = Address::Unix(directory.path().join("redirecting.sock"));
        let redirecting = address.clone();
        let limits = Limits {
            address_requests_rate_max: 1,
            address_requests_burst: 2,
            ..Limits::default()
        };
        let _server = Rig::with(app(async |_| Ok(text("here"))), |builder| {
            builder
                .limits(limits)
                .trusted_proxies("unix".parse().unwrap())
                .tls(tls().build().unwrap())
                .listen_redirecting(redirecting)
        });
        let told = "\r\nX-Forwarded-For: 203.0.113.7\r\n\r\n";
        let request = get("/").replace("\r\n\r\n", told);
        let mut client = client(&address).await;
        let mut statuses = Vec::new();
        for _ in 0..20 {
            client.send(&request).await;
            statuses.push(client.response().await.status);
        }
        assert_eq!(statuses[..2], [308, 308]);
        assert!(statuses.contains(&429), "{statuses:?}");
    })
    .await;
}

#[tokio::test]
async fn a_ca_is_served_without_tls() {
    within(async {
        let (_server, address, _directory) = start();
        let response = client(&address)
            .await
            .get("/.well-known/acme-challenge/token")
            .await;
        assert_eq!((response.status, response.text()), (200, "here"));
    })
    .await;
}

#[tokio::test]
async fn a_ca_gets_what_it_asks_for() {
    within(async {
        let directory = tempfile::tempdir().unwrap();
        let address = Address::Unix(directory.path().join("redirecting.sock"));
        let redirecting = address.clone();
        let _server = Rig::with(app(async |_| Ok(text("the application"))), |builder| {
            let builder = builder.challenges(|host, path| {
                (path == "/.well-known/acme-challenge/known").then(|| format!("for {host}"))
            });
            builder
                .tls(tls().build().unwrap())
                .listen_redirecting(redirecting)
        });
        let mut client = client(&address).await;
        let response = client.get("/.well-known/acme-challenge/known").await;
        assert_eq!((response.status, response.text()), (200, "for test"));
        let response = client.get("/.well-known/acme-challenge/unknown").await;
        assert_eq!((response.status, response.text()), (404, ""));
        assert_eq!(client.get("/").await.status, 308);
    })
    .await;
}

#[tokio::test]
async fn what_cannot_be_sent_on_is_told_so() {
    within(async {
        let (_server, address, _directory) = start();
        for request in ["GET / HTTP/1.0\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"] {
            let mut client = client(&address).await;
            client.send(request).await;
            let response = client.response().await;
            assert_eq!(response.status, 400, "{request}");
            assert!(response.text().contains("https"), "{}", response.text());
        }
    })
    .await;
}

#[tokio::test]
async fn responses_over_tls_tell_to_use_nothing_else() {
    within(async {
        let (server, _address, _directory) = start();
        let stream = connect(&server, &client_config().into()).await.unwrap();
        let mut client = Client::over(stream);
        for (path, expected) in [("/", "max-age=31536000"), ("/own", "max-age=0")] {
            let response = client.get(path).await;
            assert_eq!(response.field("strict-transport-security"), Some(expected));
        }
        // The tests over TLS without such an address.
        let server = Rig::with(app(async |_| Ok(text(""))), |builder| {
            builder.tls(tls().build().unwrap())
        });
        let mut stream = connect(&server, &client_config().into()).await.unwrap();
        let request = "GET / HTTP/1.0\r\n\r\n";
        tokio::io::AsyncWriteExt::write_all(&mut stream, request.as_bytes())
            .await
            .unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).await.unwrap();
        assert!(
            !response.contains("strict-transport-security"),
            "{response}"
        );
    })
    .await;
}
