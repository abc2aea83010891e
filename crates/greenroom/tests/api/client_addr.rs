//! The client of a request, connected or named by proxies, as the application, stages and the log
//! see it.

use std::net::SocketAddr;
use std::task::{Context, Poll};

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use futures_util::future::BoxFuture;
use greenroom::{
    Address, Client, ClientAddr, ClientKey, ForwardedHeader, Placement, Server, ServerBuilder,
    TrustedProxies,
};
use http::{Request, StatusCode};
use http_body_util::Full;
use hyper::body::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tower::{Layer, Service};

use crate::rig::{Rig, any_port, ask, get as fetch, http1, http2, within};

/// Returns the address with the port, and the client that stages see.
async fn who(client: ClientAddr) -> String {
    format!("{} {}", with_port(client), Client::current())
}

fn with_port(client: ClientAddr) -> String {
    match client.port() {
        Some(_) => format!("{} with a port", client.ip()),
        None => client.ip().to_string(),
    }
}

async fn maybe(client: Option<ClientAddr>) -> String {
    client.map_or("nobody".to_owned(), with_port)
}

fn app() -> Router {
    let inline = Router::new().route("/inline", get(who));
    Router::new()
        .route("/who", get(who))
        .route("/maybe", get(maybe))
        .merge(inline.route_layer(Placement::inline()))
}

fn behind(proxies: &str) -> ServerBuilder {
    Server::builder().trusted_proxies(proxies.parse().unwrap())
}

fn request(rig: &Rig, path: &str, fields: &[(&str, &str)]) -> Request<Full<Bytes>> {
    let mut request = Request::get(rig.url(path));
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    request.body(Full::default()).unwrap()
}

/// Returns the responses to a request with these fields, by each protocol and on stage and loop.
async fn said(rig: &Rig, fields: &[(&str, &str)]) -> Vec<String> {
    let mut said = Vec::new();
    for path in ["/who", "/inline"] {
        for client in [http1(), http2()] {
            let (status, text) = ask(&client, request(rig, path, fields)).await;
            assert_eq!(status, StatusCode::OK, "{text}");
            said.push(text);
        }
    }
    said.dedup();
    said
}

#[tokio::test]
async fn without_a_proxy_it_is_who_is_connected() {
    within(async {
        let forged = [
            ("x-forwarded-for", "203.0.113.7"),
            ("forwarded", "for=203.0.113.7"),
        ];
        for builder in [Server::builder(), behind("10.0.0.0/8, ::1, unix")] {
            let rig = Rig::with(builder, app());
            let expected = ["127.0.0.1 with a port 127.0.0.1"];
            assert_eq!(said(&rig, &forged).await, expected);
            rig.end().await;
        }
    })
    .await;
}

#[tokio::test]
async fn behind_a_trusted_proxy_it_is_whom_the_proxy_saw() {
    within(async {
        let rig = Rig::with(behind("127.0.0.0/8, 10.0.0.0/8"), app());
        for (field, expected) in [
            ("198.51.100.1, 203.0.113.7", "203.0.113.7 203.0.113.7"),
            ("203.0.113.7, 10.1.2.3", "203.0.113.7 203.0.113.7"),
            ("203.0.113.7:80", "203.0.113.7 with a port 203.0.113.7"),
            ("2001:db8::1", "2001:db8::1 2001:db8::/64"),
            ("unknown", "127.0.0.1 with a port 127.0.0.1"),
        ] {
            let fields = [("x-forwarded-for", field), ("forwarded", "for=192.0.2.66")];
            assert_eq!(said(&rig, &fields).await, [expected], "{field}");
        }
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn a_proxy_may_write_forwarded_instead() {
    within(async {
        let proxies: TrustedProxies = "127.0.0.1".parse().unwrap();
        let proxies = proxies.header(ForwardedHeader::Forwarded);
        let rig = Rig::with(Server::builder().trusted_proxies(proxies), app());
        let fields = [
            ("x-forwarded-for", "192.0.2.66"),
            (
                "forwarded",
                "for=198.51.100.1, for=\"[2001:db8::1]:80\";proto=https",
            ),
        ];
        let expected = ["2001:db8::1 with a port 2001:db8::/64"];
        assert_eq!(said(&rig, &fields).await, expected);
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn the_one_line_trusts_proxies_too() {
    within(async {
        let listener = tokio::net::TcpListener::bind(any_port()).await.unwrap();
        let url = format!("http://{}/who", listener.local_addr().unwrap());
        let serve = greenroom::serve(listener, app());
        let serve = serve.trusted_proxies("127.0.0.1".parse().unwrap());
        let serving = tokio::spawn(async { serve.await });
        let request = Request::get(url).header("x-forwarded-for", "203.0.113.7");
        let request = request.body(Full::<Bytes>::default()).unwrap();
        let said = ask(&http1(), request).await.1;
        assert_eq!(said, "203.0.113.7 203.0.113.7");
        serving.abort();
    })
    .await;
}

/// Returns the response on a Unix socket to a request with this line.
async fn said_on_unix(proxies: &str, path: &str, line: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("app.sock");
    let builder = behind(proxies).listen(Address::Unix(socket.clone()));
    let server = builder.bind().unwrap();
    let handle = server.handle();
    let serving = tokio::spawn(server.serve(app()));
    let mut stream = UnixStream::connect(&socket).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n{line}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    handle.drain();
    serving.await.unwrap().unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    format!("{} {body}", &head[9..12])
}

#[tokio::test]
async fn on_a_unix_socket_it_is_known_if_a_trusted_proxy_tells() {
    within(async {
        let line = "x-forwarded-for: 203.0.113.7\r\n";
        let said = said_on_unix("unix", "/who", line).await;
        assert_eq!(said, "200 203.0.113.7 203.0.113.7");
        for (proxies, line) in [("", line), ("127.0.0.1", line), ("unix", "")] {
            let said = said_on_unix(proxies, "/maybe", line).await;
            assert_eq!(said, "200 nobody", "{proxies} {line}");
        }
        let said = said_on_unix("", "/who", line).await;
        assert!(
            said.starts_with("500 the client's address is not known"),
            "{said}"
        );
    })
    .await;
}

/// A client that stages know by a name still has the address that it came from.
#[tokio::test]
async fn a_client_with_a_name_keeps_its_address() {
    within(async {
        let named = || ClientKey::from_fn(|_| Some(Client::named("tenant")));
        let inner = Router::new().route("/placed", get(who));
        let app = app().merge(inner.route_layer(Placement::auto().client_key(named())));
        let builder = behind("127.0.0.1").client_key(named());
        let server = builder.listen(any_port()).bind().unwrap();
        let Address::Tcp(address) = server.local_addresses()[0] else {
            panic!("a TCP address was named")
        };
        let handle = server.handle();
        let serving = tokio::spawn(server.serve(app));
        for path in ["/who", "/inline", "/placed"] {
            let url = format!("http://{address}{path}");
            let said = fetch(url.clone()).await.1;
            assert_eq!(said, "127.0.0.1 with a port tenant");
            let request = Request::get(url).header("x-forwarded-for", "203.0.113.7");
            let request = request.body(Full::<Bytes>::default()).unwrap();
            let said = ask(&http1(), request).await.1;
            assert_eq!(said, "203.0.113.7 tenant");
        }
        handle.drain();
        serving.await.unwrap().unwrap();
    })
    .await;
}

/// Has each request worked on by a task of its own, as layers do that let none be cancelled.
#[derive(Clone)]
struct Spawning;

#[derive(Clone)]
struct JoinHandle<S>(S);

impl<S> Layer<S> for Spawning {
    type Service = JoinHandle<S>;

    fn layer(&self, inner: S) -> JoinHandle<S> {
        JoinHandle(inner)
    }
}

impl<S> Service<Request<Body>> for JoinHandle<S>
where
    S: Service<Request<Body>, Error: Send, Response: Send, Future: Send + 'static>
        + Clone
        + Send
        + 'static,
    S::Response: 'static,
    S::Error: 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let task = tokio::spawn(self.0.call(request));
        Box::pin(async { task.await.unwrap() })
    }
}

#[tokio::test]
async fn a_task_of_its_own_is_told_the_same() {
    within(async {
        let app = app().layer(Spawning);
        let app = app.into_make_service_with_connect_info::<SocketAddr>();
        for (proxies, expected) in [
            ("127.0.0.1", "203.0.113.7"),
            ("10.0.0.1", "127.0.0.1 with a port"),
        ] {
            let rig = Rig::with(behind(proxies), app.clone());
            let named = [("x-forwarded-for", "203.0.113.7")];
            let said = ask(&http1(), request(&rig, "/maybe", &named)).await.1;
            assert_eq!(said, expected);
            rig.end().await;
        }
    })
    .await;
}

#[tokio::test]
async fn under_axum_it_is_what_connect_info_says() {
    within(async {
        let listener = tokio::net::TcpListener::bind(any_port()).await.unwrap();
        let url = format!("http://{}/maybe", listener.local_addr().unwrap());
        let told = app().into_make_service_with_connect_info::<SocketAddr>();
        let serving = tokio::spawn(axum::serve(listener, told).into_future());
        let request = Request::get(&url).header("x-forwarded-for", "203.0.113.7");
        let request = request.body(Full::<Bytes>::default()).unwrap();
        assert_eq!(ask(&http1(), request).await.1, "127.0.0.1 with a port");
        serving.abort();

        let listener = tokio::net::TcpListener::bind(any_port()).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let serving = tokio::spawn(axum::serve(listener, app()).into_future());
        assert_eq!(fetch(format!("{url}/maybe")).await.1, "nobody");
        assert_eq!(fetch(format!("{url}/inline")).await.0, 500);
        serving.abort();
    })
    .await;
}
