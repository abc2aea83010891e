//! `/block/{ms}`: blocks its thread by sleeping.
//!
//! Old code does so when it asks a database, and it stalls an event loop.

use std::thread;
use std::time::Duration;

use axum::extract::Path;

use super::number::{self, Rejection};

const MILLIS_MAX: u64 = 10_000;

pub(super) async fn respond(Path(millis): Path<String>) -> Result<String, Rejection> {
    let millis = number::parse(&millis, MILLIS_MAX)?;
    thread::sleep(Duration::from_millis(millis));
    Ok(format!("blocked for {millis} ms\n"))
}
