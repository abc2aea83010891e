//! axum and reqwest as a proxy, the body streamed through.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode, header};
use axum::routing::get;
use reqwest::{Client, Url};
use tokio::net::TcpListener;

use crate::listen;
use crate::peers::without_delay;

struct Relay {
    client: Client,
    upstream: Url,
}

pub(crate) async fn serve(address: SocketAddr, upstream: Url) -> anyhow::Result<()> {
    let client = Client::builder().no_proxy().tcp_nodelay(true).build()?;
    let relay = Arc::new(Relay { client, upstream });
    let routes = Router::new().route("/proxy", get(proxy)).with_state(relay);
    let listener = without_delay(TcpListener::from_std(listen(address)?)?);
    Ok(axum::serve(listener, routes).await?)
}

async fn proxy(State(relay): State<Arc<Relay>>) -> Result<Response<Body>, StatusCode> {
    let request = relay.client.get(relay.upstream.clone());
    let upstream = request.send().await.map_err(|_| StatusCode::BAD_GATEWAY)?;
    let mut response = Response::new(Body::empty());
    *response.status_mut() = upstream.status();
    for name in [header::CONTENT_TYPE, header::CONTENT_LENGTH] {
        if let Some(value) = upstream.headers().get(&name) {
            response.headers_mut().insert(name, value.clone());
        }
    }
    *response.body_mut() = Body::from_stream(upstream.bytes_stream());
    Ok(response)
}
