//! `/mixed`: waits, blocks and computes in one handler, as real ones do.

use std::thread;
use std::time::Duration;

use axum::extract::Query;
use axum::http::StatusCode;
use serde::Deserialize;

use super::fib;
use super::number::Rejection;

const WAIT_MILLIS_MAX: u64 = 10_000;
const BLOCK_MILLIS_MAX: u64 = 10_000;

/// The amount of each kind of work, if the query does not give it.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Work {
    wait: u64,
    block: u64,
    fib: u64,
}

impl Default for Work {
    fn default() -> Self {
        Self {
            wait: 100,
            block: 10,
            fib: 10_000,
        }
    }
}

pub(super) async fn respond(Query(work): Query<Work>) -> Result<String, Rejection> {
    let Work { wait, block, fib } = work;
    within("wait", wait, WAIT_MILLIS_MAX)?;
    within("block", block, BLOCK_MILLIS_MAX)?;
    within("fib", fib, fib::N_MAX)?;
    tokio::time::sleep(Duration::from_millis(wait)).await;
    thread::sleep(Duration::from_millis(block));
    let digits = fib::decimal(fib).len();
    Ok(format!(
        "waited for {wait} ms, blocked for {block} ms, \
         computed the {digits} digits of number {fib}\n"
    ))
}

fn within(name: &str, value: u64, max: u64) -> Result<(), Rejection> {
    if value <= max {
        return Ok(());
    }
    let text = format!("{name}={value} is too much: at most {max}.\n");
    Err((StatusCode::BAD_REQUEST, text))
}
