//! A driver that blocks, and bears two calls at a time, on a stage of its own.
//!
//! Without a word of ours its route would run beside the loops too, on the default stage, which
//! adds threads for what blocks. A stage of its own bounds how many calls the device sees at once,
//! and how long anybody waits for his turn.
//!
//! ```sh
//! cargo run -p greenroom-examples --bin blocking_driver
//! curl http://127.0.0.1:5000/measure/7
//! ```

use std::time::Duration;

use axum::http::StatusCode;
use axum::{Router, extract::Path, routing::get};
use greenroom::Stage;
use tokio::net::TcpListener;

/// Stands for a driver in C: an ordinary function, which returns when it is done.
fn measure(sensor: u32) -> Result<u32, &'static str> {
    std::thread::sleep(Duration::from_millis(100));
    if sensor > 9 {
        Err("no such sensor")
    } else {
        Ok(20 + sensor)
    }
}

/// A handler that is no `async fn`: `Stage::handler` takes extractors and responses all the same.
fn temperature(Path(sensor): Path<u32>) -> Result<String, (StatusCode, &'static str)> {
    let measured = measure(sensor);
    let celsius = measured.map_err(|why| (StatusCode::NOT_FOUND, why))?;
    Ok(format!("{celsius} degrees\n"))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let driver = Stage::builder("driver")
        .threads(1..=2)
        .blocking_threads_max(2) // the device bears two; more calls wait here
        .queue_wait_max(Duration::from_secs(3)) // who would wait longer: 503, Retry-After
        .queue_max(100)
        .build()?;
    let app = Router::new()
        .route("/measure/{sensor}", get(driver.handler(temperature)))
        .route("/hello", get(|| async { "Hello, world!\n" }));

    let address = std::env::args().nth(1);
    let address = address.as_deref().unwrap_or("127.0.0.1:5000");
    let listener = TcpListener::bind(address).await?;
    println!("listening on {}", listener.local_addr()?);
    Ok(greenroom::serve(listener, app).await?)
}
