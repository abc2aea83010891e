//! Upstreams that do as they are told, byte by byte, and one that tells what it was asked.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::Body;
use futures_util::StreamExt;
use http::Request;
use http_body_util::BodyExt;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::rig::read_to;

/// An upstream that runs `serve` for each connection, with the connection's number.
pub(crate) struct Scripted {
    pub(crate) address: SocketAddr,
    connections: Arc<AtomicUsize>,
    serving: JoinHandle<()>,
}

impl Scripted {
    pub(crate) async fn start<F>(serve: impl Fn(usize, TcpStream) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self::at("127.0.0.1:0".parse().unwrap(), serve).await
    }

    pub(crate) async fn at<F>(
        address: SocketAddr,
        serve: impl Fn(usize, TcpStream) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&connections);
        let serving = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let number = counted.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(serve(number, stream));
            }
        });
        Self {
            address,
            connections,
            serving,
        }
    }

    /// Responds to each request without a body in the same way, on connections that it keeps.
    pub(crate) async fn responds(response: &'static str) -> Self {
        Self::start(move |_, mut stream| async move {
            while let Some(_head) = head(&mut stream).await {
                if stream.write_all(response.as_bytes()).await.is_err() {
                    return;
                }
            }
        })
        .await
    }

    /// Responds to the first request of each connection in this way, and closes it.
    pub(crate) async fn responds_once(response: &'static str) -> Self {
        Self::start(move |_, mut stream| async move {
            head(&mut stream).await;
            let _sent = stream.write_all(response.as_bytes()).await;
        })
        .await
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Reads the head of a request; `None` at the end of the connection.
pub(crate) async fn head(stream: &mut TcpStream) -> Option<String> {
    let mut byte = [0];
    match stream.peek(&mut byte).await {
        Ok(1) => Some(read_to(stream, "\r\n\r\n").await),
        _ => None,
    }
}

/// Returns a response of HTTP/1.1 with this body.
pub(crate) fn ok(body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Starts an application of axum on a free port.
pub(crate) async fn serve(app: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await });
    address
}

/// An application that responds with the request, and with its body as it comes.
pub(crate) fn echo() -> Router {
    Router::new().fallback(|request: Request<Body>| async move {
        let (parts, body) = request.into_parts();
        let mut told = format!("{} {}\n", parts.method, parts.uri);
        for (name, value) in &parts.headers {
            writeln!(told, "{name}: {}", value.to_str().unwrap_or("?")).unwrap();
        }
        told.push('\n');
        let told = futures_util::stream::once(async { Ok(told.into()) });
        Body::from_stream(told.chain(body.into_data_stream()))
    })
}

pub(crate) async fn start_echo() -> SocketAddr {
    serve(echo()).await
}

/// Returns the number of bytes of a body, which is read to its end.
pub(crate) async fn count(body: Body) -> String {
    let mut body = body;
    let mut bytes = 0;
    while let Some(frame) = body.frame().await {
        match frame {
            Ok(frame) => bytes += frame.data_ref().map_or(0, bytes::Bytes::len),
            Err(error) => return format!("broken: {error}"),
        }
    }
    bytes.to_string()
}
