//! What the routes do: nothing, compute, block.

use std::mem;
use std::thread;
use std::time::Duration;

use axum::Json;
use axum::extract::Path;
use axum::http::StatusCode;
use greenroom_stage::Status;
use num_bigint::BigUint;
use tokio::task::spawn_blocking;

/// As in the demo application of Greenroom.
const N_MAX: u64 = 100_000;
const MILLIS_MAX: u64 = 60_000;

type Answer = Result<String, StatusCode>;

pub(crate) async fn hello() -> &'static str {
    "Hello, world!\n"
}

pub(crate) async fn fib_inline(Path(n): Path<u64>) -> Answer {
    fib(n)
}

pub(crate) async fn fib_elsewhere(Path(n): Path<u64>) -> Answer {
    elsewhere(move || fib(n)).await
}

pub(crate) async fn block_inline(Path(millis): Path<u64>) -> Answer {
    block(millis)
}

pub(crate) async fn block_elsewhere(Path(millis): Path<u64>) -> Answer {
    elsewhere(move || block(millis)).await
}

pub(crate) async fn status() -> Json<Status> {
    Json(greenroom_stage::status())
}

async fn elsewhere(work: impl FnOnce() -> Answer + Send + 'static) -> Answer {
    let done = spawn_blocking(work).await;
    done.unwrap_or(Err(StatusCode::INTERNAL_SERVER_ERROR))
}

fn fib(n: u64) -> Answer {
    if n > N_MAX {
        return Err(StatusCode::BAD_REQUEST);
    }
    let mut text = fibonacci(n).to_string();
    text.push('\n');
    Ok(text)
}

fn block(millis: u64) -> Answer {
    if millis > MILLIS_MAX {
        return Err(StatusCode::BAD_REQUEST);
    }
    thread::sleep(Duration::from_millis(millis));
    Ok("done\n".to_owned())
}

fn fibonacci(n: u64) -> BigUint {
    let mut current = BigUint::from(0_u8);
    let mut next = BigUint::from(1_u8);
    for _ in 0..n {
        current += &next;
        mem::swap(&mut current, &mut next);
    }
    current
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hundredth_number_is_beyond_64_bits() {
        assert_eq!(fib(100), Ok("354224848179261915075\n".to_owned()));
        assert_eq!(fib(N_MAX + 1), Err(StatusCode::BAD_REQUEST));
    }
}
