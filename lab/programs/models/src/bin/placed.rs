//! Greenroom: an axum application that says nowhere where a handler runs.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use models::{Counter, MILLIS_MAX, Model, N_MAX, announce, fibonacci, listen};
use tokio::net::TcpListener;

type Response = Result<String, StatusCode>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let model = Model {
        about: "Automatic placement: Greenroom serves an axum application",
        limits: &[],
    };
    let listener = listen(model.address())?;
    announce(&listener)?;
    listener.set_nonblocking(true)?;
    let app = Router::new()
        .route("/hello", get(|| async { "Hello, world!\n" }))
        .route("/wait/{millis}", get(wait))
        .route("/compute/{n}", get(|Path(n)| async move { compute(n) }))
        .route("/both/{millis}/{n}", get(both))
        .route("/count", get(count))
        .with_state(Arc::default());
    greenroom::serve(TcpListener::from_std(listener)?, app).await?;
    Ok(())
}

async fn wait(Path(millis): Path<u64>) -> Response {
    if millis > MILLIS_MAX {
        return Err(StatusCode::NOT_FOUND);
    }
    tokio::time::sleep(Duration::from_millis(millis)).await;
    Ok("waited\n".to_owned())
}

fn compute(n: u64) -> Response {
    if n > N_MAX {
        return Err(StatusCode::NOT_FOUND);
    }
    Ok(format!("{}\n", fibonacci(n)))
}

async fn both(Path((millis, n)): Path<(u64, u64)>) -> Response {
    wait(Path(millis)).await?;
    compute(n)
}

async fn count(State(counter): State<Arc<Counter>>) -> String {
    format!("{}\n", counter.add())
}
