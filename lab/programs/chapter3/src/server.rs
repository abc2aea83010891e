//! The programs that serve.

use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{Method, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use greenroom::Stage;
use tokio::net::TcpListener;
use tokio::time::sleep;

const STEP: Duration = Duration::from_millis(5);
const QUERY: Duration = Duration::from_millis(20);

pub(crate) async fn serve(address: &str) -> anyhow::Result<()> {
    // The load is one client, which has 20 of them.
    let database = Stage::builder("database")
        .blocking_threads_max(22)
        .build()?;
    let app = Router::new()
        .route("/hello", get(async || "Hello World\n"))
        .route("/echo", get(echo))
        .route("/steps", get(steps))
        .route("/query", get(query))
        .with_state(database);
    let listener = TcpListener::bind(address).await?;
    Ok(greenroom::serve(listener, app).await?)
}

async fn echo(method: Method, uri: Uri) -> String {
    format!("You said: {method} {uri}\n")
}

async fn steps() -> String {
    let one = step(0).await;
    let two = step(one).await;
    let three = step(two).await;
    let four = step(three).await;
    format!("{four}\n")
}

async fn step(value: u32) -> u32 {
    sleep(STEP).await;
    value + 1
}

async fn query(State(database): State<Stage>) -> Response {
    let contact = database.run(find_by_id).await;
    contact.into_response()
}

fn find_by_id() -> &'static str {
    std::thread::sleep(QUERY); // blocks, as many drivers do
    "contact 123\n"
}
