//! The proxy case's peer: axum and reqwest, the body streamed through.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode, header};
use axum::routing::get;
use axum::serve::ListenerExt;
use clap::Parser;
use http_bench_apps::{announce, listen, runtime};
use reqwest::{Client, Url};
use tokio::net::TcpListener;

#[derive(Debug, Parser)]
struct Options {
    /// Port on 127.0.0.1; 0 takes a free one
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Server to which every request goes
    #[arg(long)]
    upstream: Url,
}

struct Relay {
    client: Client,
    upstream: Url,
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    runtime()?.block_on(async {
        let listener = TcpListener::from_std(listen(options.port)?)?;
        announce(listener.local_addr()?)?;
        let client = Client::builder().no_proxy().tcp_nodelay(true).build()?;
        let relay = Arc::new(Relay {
            client,
            upstream: options.upstream,
        });
        let routes = Router::new().route("/proxy", get(proxy)).with_state(relay);
        let listener = listener.tap_io(|stream| {
            // A connection that is gone already needs no option.
            let _ = stream.set_nodelay(true);
        });
        axum::serve(listener, routes).await?;
        Ok(())
    })
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
