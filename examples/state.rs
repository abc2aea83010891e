//! State that requests share: what is only counted or replaced needs no actor and no database.
//!
//! ```sh
//! cargo run -p greenroom-examples --bin state
//! curl -X PUT -d 'blue' http://127.0.0.1:5000/colours/sky
//! curl http://127.0.0.1:5000/colours/sky
//! ```

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::{Router, routing::get};
use tokio::net::TcpListener;

/// Without a bound on what clients may store, one of them could fill the memory.
const COLOURS_MAX: usize = 1_000;

#[derive(Default)]
struct Site {
    visits: AtomicU64,
    // A lock of std, not of tokio: it is held for a line and never across an `.await`.
    colours: RwLock<HashMap<String, String>>,
}

async fn visit(State(site): State<Arc<Site>>) -> String {
    let before = site.visits.fetch_add(1, Ordering::Relaxed);
    format!("visit {}\n", before + 1)
}

async fn colour(State(site): State<Arc<Site>>, Path(thing): Path<String>) -> (StatusCode, String) {
    let colours = site.colours.read().unwrap_or_else(PoisonError::into_inner);
    match colours.get(&thing) {
        Some(colour) => (StatusCode::OK, format!("{colour}\n")),
        None => (
            StatusCode::NOT_FOUND,
            format!("no colour of {thing} is known\n"),
        ),
    }
}

async fn paint(
    State(site): State<Arc<Site>>,
    Path(thing): Path<String>,
    colour: String, // the body, of 2 MB at most: axum's default
) -> StatusCode {
    let mut colours = site.colours.write().unwrap_or_else(PoisonError::into_inner);
    if colours.len() >= COLOURS_MAX && !colours.contains_key(&thing) {
        return StatusCode::INSUFFICIENT_STORAGE;
    }
    colours.insert(thing, colour);
    StatusCode::NO_CONTENT
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    // The loops share it: `Arc` is cloned for each of them.
    let app = Router::new()
        .route("/", get(visit))
        .route("/colours/{thing}", get(colour).put(paint))
        .with_state(Arc::new(Site::default()));

    let address = std::env::args().nth(1);
    let address = address.as_deref().unwrap_or("127.0.0.1:5000");
    let listener = TcpListener::bind(address).await?;
    println!("listening on {}", listener.local_addr()?);
    greenroom::serve(listener, app).await
}
