//! The number at the end of `/fib/{n}` and `/bytes/{n}`.

use axum::http::StatusCode;

/// A refused number in a path: the status and a text for the client.
pub(super) type Rejection = (StatusCode, String);

/// Parses a whole number from 0 to `max`, in decimal digits and nothing else.
pub(super) fn parse(text: &str, max: u64) -> Result<u64, Rejection> {
    let all_digits = text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(number) if all_digits && number <= max => Ok(number),
        _ => Err((
            StatusCode::BAD_REQUEST,
            format!("The last part of the path must be a whole number from 0 to {max}.\n"),
        )),
    }
}
