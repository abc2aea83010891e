//! The least that one needs: a router and one line that serves it, on one loop for each core.
//!
//! ```sh
//! cargo run -p greenroom-examples --bin hello
//! curl http://127.0.0.1:5000/
//! ```

use axum::{Router, extract::Path, routing::get};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let app = Router::new()
        .route("/", get(|| async { "Hello, world!\n" }))
        .route("/{name}", get(greet));

    // All examples listen where their first argument says; a test says port 0.
    let address = std::env::args().nth(1);
    let address = address.as_deref().unwrap_or("127.0.0.1:5000");
    let listener = TcpListener::bind(address).await?;
    println!("listening on {}", listener.local_addr()?);
    greenroom::serve(listener, app).await // was: axum::serve(listener, app).await
}

async fn greet(Path(name): Path<String>) -> String {
    format!("Hello, {name}!\n")
}
