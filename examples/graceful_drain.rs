//! A server that ends without losing a request: SIGTERM drains it, a second one ends it at once.
//!
//! ```sh
//! cargo run -p greenroom-examples --bin graceful_drain
//! curl http://127.0.0.1:5000/work & kill -TERM $(pidof graceful_drain)
//! ```

use std::process::ExitCode;
use std::time::Duration;

use axum::http::StatusCode;
use axum::{Router, routing::get};
use greenroom::{Draining, Limits, Server};

/// Is finished: the drain waits for it.
async fn work() -> &'static str {
    tokio::time::sleep(Duration::from_millis(500)).await;
    "all of it\n"
}

/// Would last for a minute, and ends early: the client asks again, and comes to the next server.
async fn poll(draining: Draining) -> Result<&'static str, StatusCode> {
    tokio::select! {
        () = tokio::time::sleep(Duration::from_mins(1)) => Ok("nothing new\n"),
        () = draining => Err(StatusCode::NO_CONTENT),
    }
}

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let app = Router::new()
        .route("/work", get(work))
        .route("/poll", get(poll));

    let address = std::env::args().nth(1);
    let address = address.as_deref().unwrap_or("127.0.0.1:5000");
    let limits = Limits {
        drain_deadline: Duration::from_secs(20), // keep it below systemd's TimeoutStopSec
        ..Limits::default()
    };
    let server = Server::builder()
        .listen(address)
        .limits(limits)
        .shutdown_on_signals()
        .bind()?;
    for address in server.local_addresses() {
        println!("listening on {address}");
    }
    let report = server.serve(app).await?;
    for cut in &report.aborted {
        eprintln!("not finished by the deadline: {cut}");
    }
    let all_finished = report.aborted.is_empty();
    Ok(if all_finished {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
