//! A program that is exchanged for its next version without a lost request: SIGUSR2 starts what is
//! at its path by then, hands the sockets over, and drains once that serves.
//!
//! ```sh
//! cargo build -p greenroom-examples --bin upgrade && target/debug/upgrade &
//! curl http://127.0.0.1:5000/       # process 4711
//! greenroom upgrade $(pidof upgrade) # or kill -USR2; the log says what becomes of it
//! curl http://127.0.0.1:5000/       # process 4712
//! ```

use std::process::ExitCode;

use axum::Router;
use axum::extract::ws::{WebSocket, WebSocketUpgrade};
use axum::routing::{any, get};
use greenroom::Server;

async fn process() -> String {
    format!("process {}\n", std::process::id())
}

/// Echoes. It knows nothing of upgrades: the server tells clients to come back, by a close frame
/// with 1012.
async fn echo(mut socket: WebSocket) {
    while let Some(Ok(message)) = socket.recv().await {
        if socket.send(message).await.is_err() {
            return;
        }
    }
}

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    // The addresses are named, not bound here: the next version gets them by their names.
    let address = std::env::args().nth(1);
    let address = address.as_deref().unwrap_or("127.0.0.1:5000");
    let server = Server::builder()
        .listen(address)
        .shutdown_on_signals()
        .upgrade_on_signal()
        .bind()?;

    // What takes long, such as a cache to be filled, stands here: the version before serves.
    let app = Router::new().route("/", get(process)).route(
        "/echo",
        any(|upgrade: WebSocketUpgrade| async { upgrade.on_upgrade(echo) }),
    );

    println!("listening on {}", server.local_addresses()[0]);
    let report = server.serve(app).await?;
    Ok(if report.aborted.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
