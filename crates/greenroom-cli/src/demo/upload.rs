//! `/upload`: reads a body of any length the server admits, in constant memory.

use std::error::Error;

use axum::Json;
use axum::body::Body;
use axum::http::StatusCode;
use futures_util::TryStreamExt;
use http_body_util::LengthLimitError;
use serde::Serialize;
use sha2::{Digest, Sha256};

#[derive(Serialize)]
pub(super) struct Receipt {
    bytes: u64,
    sha256: String,
}

/// Hashes each chunk as it arrives, on the loop: hashing keeps pace with a network, and no chunk is
/// longer than the server's read buffer.
pub(super) async fn respond(body: Body) -> Result<Json<Receipt>, (StatusCode, String)> {
    let mut pieces = body.into_data_stream();
    let mut hash = Sha256::new();
    let mut bytes = 0;
    while let Some(piece) = pieces
        .try_next()
        .await
        .map_err(|error| unreadable(&error))?
    {
        bytes += piece.len() as u64;
        hash.update(&piece);
    }
    let sha256 = hex::encode(hash.finalize());
    Ok(Json(Receipt { bytes, sha256 }))
}

fn unreadable(error: &axum::Error) -> (StatusCode, String) {
    let text = format!("The body could not be read to its end: {error}.\n");
    let cause = error.source();
    let over_limit = cause.is_some_and(<dyn Error>::is::<LengthLimitError>);
    let status = if over_limit {
        StatusCode::PAYLOAD_TOO_LARGE
    } else {
        StatusCode::BAD_REQUEST
    };
    (status, text)
}
