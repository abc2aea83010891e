//! `axum::serve` as it is, with stages: the crate `greenroom-stage` needs no server of ours.
//!
//! ```sh
//! cargo run -p greenroom-examples --bin plain_axum
//! curl http://127.0.0.1:5000/slow & curl http://127.0.0.1:5000/hello
//! ```

use std::time::Duration;

use axum::{Json, Router, routing::get};
use greenroom_stage::{Placement, Status};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let slow = || async {
        std::thread::sleep(Duration::from_millis(200)); // would hold up all others of its thread
        "done\n"
    };
    let status = || async { Json::<Status>(greenroom_stage::status()) };
    let app = Router::new()
        .route("/hello", get(|| async { "Hello, world!\n" }))
        .route("/slow", get(slow))
        // Each route begins on the stage, and moves to axum's threads when it has proven short.
        .layer(Placement::auto())
        // Added after the layer, so not placed: it can be asked when all else is overloaded.
        .route("/status", get(status));

    let address = std::env::args().nth(1);
    let address = address.as_deref().unwrap_or("127.0.0.1:5000");
    let listener = TcpListener::bind(address).await?;
    println!("listening on {}", listener.local_addr()?);
    axum::serve(listener, app).await
}
