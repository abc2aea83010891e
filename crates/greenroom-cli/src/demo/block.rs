//! `/block/{ms}`: sleeps as a program that knows no event loop does, and keeps its thread meanwhile.
//!
//! That is what old code does when it asks a database, and what an event loop dies of.

use std::thread;
use std::time::Duration;

use axum::extract::Path;

use super::number::{self, Refusal};

const MILLIS_MAX: u64 = 10_000;

pub(super) async fn answer(Path(millis): Path<String>) -> Result<String, Refusal> {
    let millis = number::parse(&millis, MILLIS_MAX)?;
    thread::sleep(Duration::from_millis(millis));
    Ok(format!("blocked for {millis} ms\n"))
}
