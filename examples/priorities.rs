//! Priorities: some requests go first under overload; and a key by which clients are told apart.
//!
//! Stages are fair between clients: a flood delays itself. A client is an address, unless an
//! application knows better; here it is whoever holds an API key.
//!
//! ```sh
//! cargo run -p greenroom-examples --bin priorities
//! curl -H 'x-api-key: correct-horse' http://127.0.0.1:5000/report
//! ```

use axum::http::{HeaderMap, StatusCode};
use axum::{Router, routing::get};
use greenroom::{Client, ClientKey, Placement, Priority};
use tokio::net::TcpListener;

const KEYS: [(&str, &str); 2] = [("correct-horse", "ada"), ("battery-staple", "grace")];

/// The customer of this key. Only a key that we know names a client: could clients choose their
/// names, one of them could pretend to be many, and have the share of many.
fn customer(headers: &HeaderMap) -> Option<&'static str> {
    let sent = headers.get("x-api-key")?.to_str().ok()?;
    let known = KEYS.iter().find(|(key, _)| *key == sent);
    known.map(|(_, customer)| *customer)
}

async fn report(headers: HeaderMap) -> Result<String, StatusCode> {
    let customer = customer(&headers).ok_or(StatusCode::UNAUTHORIZED)?;
    let sum: u64 = (0..100_000_u64).map(|number| number % 7).sum(); // computes
    Ok(format!("{customer}: {sum}\n"))
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let app = Router::new()
        .route("/report", get(report))
        // Of two placements around a handler the inner one decides: these differ from `serve`'s.
        .merge(
            Router::new()
                .route("/health", get(|| async { "fine\n" }))
                // Never refused before all other work is, and before other work in the queue.
                .layer(Placement::auto().priority(Priority::Critical)),
        )
        .merge(
            Router::new()
                .route("/export", get(|| async { "everything\n" }))
                // Refused first: what can come back later.
                .layer(Placement::auto().priority(Priority::Bulk)),
        );
    let by_key = ClientKey::from_fn(|parts| customer(&parts.headers).map(Client::named));

    let address = std::env::args().nth(1);
    let address = address.as_deref().unwrap_or("127.0.0.1:5000");
    let listener = TcpListener::bind(address).await?;
    println!("listening on {}", listener.local_addr()?);
    greenroom::serve(listener, app).client_key(by_key).await
}
