//! A reverse proxy in a Rust router: what has moved to Rust is served here, all else by the servers
//! that were there before.
//!
//! ```sh
//! cargo run -p greenroom-examples --bin hello -- 127.0.0.1:9000
//! cargo run -p greenroom-examples --bin reverse_proxy -- 127.0.0.1:5000 http://127.0.0.1:9000
//! curl http://127.0.0.1:5000/rust http://127.0.0.1:5000/Ada http://127.0.0.1:5000/upstreams
//! ```

use std::time::Duration;

use axum::{Json, Router, routing::get};
use greenroom::Server;
use greenroom::proxy::{Proxy, Settings, UpstreamAddress};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments
        .next()
        .unwrap_or_else(|| "127.0.0.1:5000".to_owned());
    // `http://host:port` or `unix:/path/to.sock`, one or more
    let mut upstreams: Vec<UpstreamAddress> = Vec::new();
    for upstream in arguments {
        upstreams.push(upstream.parse()?);
    }
    let proxy = Proxy::new(Settings {
        response_head_timeout: Duration::from_secs(30),
        failure_statuses: vec![502, 503, 504],
        ..Settings::new(upstreams)
    })?;
    let watched = proxy.clone(); // clones share connections, limits and health
    let app = Router::new()
        .route("/rust", get(|| async { "Hello from Rust\n" }))
        .route("/upstreams", get(|| async move { Json(watched.status()) }))
        .fallback_service(proxy);

    let server = Server::builder()
        .listen(address)
        .shutdown_on_signals()
        .bind()?;
    for address in server.local_addresses() {
        println!("listening on {address}");
    }
    server.serve(app).await?;
    Ok(())
}
