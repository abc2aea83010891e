//! The handlers: they do nothing, compute, block, or move a large body.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::mem;
use std::sync::LazyLock;
use std::thread;
use std::time::Duration;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::Path;
use axum::http::header::CONTENT_TYPE;
use axum::http::{StatusCode, Uri};
use axum::response::IntoResponse;
use futures_util::{StreamExt, stream};
use greenroom_stage::Status;
use num_bigint::BigUint;
use tokio::task::spawn_blocking;

/// The largest number of `/fib`, as in the demo application of Greenroom.
const N_MAX: u64 = 100_000;
const MILLIS_MAX: u64 = 60_000;
/// The least length of the large body.
const JSON_BYTES: usize = 1_600_000;

/// The parts of the longest body, a gigabyte.
const PARTS: usize = 16 * 1_024;
const PART: Bytes = Bytes::from_static(&[0; 64 * 1_024]);

static JSON: LazyLock<String> = LazyLock::new(json_text);

type Response = Result<String, StatusCode>;

pub(crate) async fn hello() -> &'static str {
    "Hello, world!\n"
}

pub(crate) async fn fib_inline(Path(n): Path<u64>) -> Response {
    fib(n)
}

pub(crate) async fn fib_elsewhere(Path(n): Path<u64>) -> Response {
    elsewhere(move || fib(n)).await
}

pub(crate) async fn block_inline(Path(millis): Path<u64>) -> Response {
    block(millis)
}

pub(crate) async fn block_elsewhere(Path(millis): Path<u64>) -> Response {
    elsewhere(move || block(millis)).await
}

/// The service of a server without a router, which matches the path itself.
pub(crate) async fn by_path(uri: Uri) -> Response {
    if uri.path() == "/hello" {
        return Ok(hello().await.to_owned());
    }
    let millis = uri.path().strip_prefix("/block/");
    let millis = millis.and_then(|millis| millis.parse().ok());
    millis.map_or(Err(StatusCode::NOT_FOUND), block)
}

/// Reads a body to its end, and tells its length.
pub(crate) async fn take(body: Body) -> Response {
    let mut parts = body.into_data_stream();
    let mut bytes = 0;
    while let Some(part) = parts.next().await {
        bytes += part.map_err(|_| StatusCode::BAD_REQUEST)?.len();
    }
    Ok(format!("{bytes}\n"))
}

/// Sends a gigabyte of zeros.
pub(crate) async fn give() -> Body {
    let parts = stream::repeat(PART).take(PARTS);
    Body::from_stream(parts.map(Ok::<_, Infallible>))
}

/// Returns the large body at once; its compression takes long.
pub(crate) async fn json() -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], JSON.as_str())
}

pub(crate) async fn status() -> Json<Status> {
    Json(greenroom_stage::status())
}

async fn elsewhere(work: impl FnOnce() -> Response + Send + 'static) -> Response {
    let done = spawn_blocking(work).await;
    done.unwrap_or(Err(StatusCode::INTERNAL_SERVER_ERROR))
}

fn fib(n: u64) -> Response {
    if n > N_MAX {
        return Err(StatusCode::BAD_REQUEST);
    }
    let mut text = fibonacci(n).to_string();
    text.push('\n');
    Ok(text)
}

fn block(millis: u64) -> Response {
    if millis > MILLIS_MAX {
        return Err(StatusCode::BAD_REQUEST);
    }
    thread::sleep(Duration::from_millis(millis));
    Ok("done\n".to_owned())
}

/// Returns a list of objects, as similar as those of an application are, and no two the same.
fn json_text() -> String {
    let mut text = String::from("[");
    let mut number = 0_u64;
    while text.len() < JSON_BYTES {
        let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            r#"{{"id":{number},"name":"user-{:06x}","score":{},"tags":["a","b"]}},"#,
            mixed >> 40,
            mixed % 100_000
        );
        number += 1;
    }
    text.push_str("null]");
    text
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
    fn the_large_body_is_json() {
        let text = json_text();
        assert!((JSON_BYTES..JSON_BYTES + 200).contains(&text.len()));
        assert!(text.starts_with("[{") && text.ends_with("},null]"));
    }

    #[test]
    fn the_hundredth_number_is_beyond_64_bits() {
        assert_eq!(fib(100), Ok("354224848179261915075\n".to_owned()));
        assert_eq!(fib(N_MAX + 1), Err(StatusCode::BAD_REQUEST));
    }
}
