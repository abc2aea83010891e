//! Signed requests of programs: HTTP Message Signatures (RFC 9421) with a shared secret, over the
//! method, the path, the query and the digest of the body (RFC 9530).
//!
//! A signature is valid for half a minute and once.

mod digest;
mod parse;
mod uploads;
mod verify;

use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, FromRequest, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytesize::ByteSize;
use http::StatusCode;
use http::request::Parts;

use self::parse::is_signed;
use crate::model::{Author, Id};
use crate::{App, Failure};

pub use self::uploads::SignedUploads;
pub use self::verify::WINDOW_SECONDS;

/// The signer of a request, in its extensions once the signature is verified.
#[derive(Clone, Debug)]
pub(super) struct Signer {
    pub(super) author: Author,
    pub(super) key: Id,
}

/// The fault of a signature.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
enum Error {
    #[error("the header `{0}` is missing")]
    Missing(&'static str),
    #[error("the header `{0}` cannot be read as RFC 9421 and RFC 9530 say")]
    Malformed(&'static str),
    #[error(
        "exactly one signature is taken, of the same label in `Signature-Input` and `Signature`"
    )]
    Label,
    #[error(
        "the signature must cover (\"@method\" \"@path\" \"@query\" \"content-digest\"), \
         and nothing else"
    )]
    Components,
    #[error(
        "the signature must have the parameters created (an integer), nonce, keyid, \
         alg=\"hmac-sha256\" (texts), and no others"
    )]
    Parameters,
    #[error("a nonce has 8 to 64 characters")]
    Nonce,
    #[error(
        "the signature was made at {created}, but here it is {now} (seconds since 1970): \
         they must not be more than {WINDOW_SECONDS} s apart; GET /time tells the time"
    )]
    Window { created: i64, now: i64 },
    #[error("there is no such key, or the signature is not made with it for this request")]
    Wrong,
    #[error("a request with this nonce was received before")]
    Replayed,
    #[error("the body is not the one of `Content-Digest`")]
    Body,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::BadSignature(error.to_string())
    }
}

/// Middleware that verifies the signature of requests that have one, the body included.
///
/// The body is read whole, within the limit of the route, or of [`SignedUploads`] if that is in the
/// extensions; then the user holds one of its permits until the response is there. Requests without
/// a signature pass unchanged.
///
/// # Errors
/// [`Failure::BadSignature`], and for uploads [`Failure::TooLarge`], [`Failure::TooMany`] and
/// [`Failure::Unavailable`].
pub async fn check_signature(
    State(app): State<App>,
    request: Request,
    next: Next,
) -> Result<Response, Failure> {
    if !is_signed(request.headers()) {
        return Ok(next.run(request).await);
    }
    let (parts, body) = request.into_parts();
    let signature = parse::parse(&parts)?;
    let signer = verify::verify(&app, &signature).await?;
    let uploads = parts.extensions.get::<SignedUploads>();
    let _permit = uploads
        .map(|uploads| uploads.take(signer.author.id))
        .transpose()?;
    match whole(&parts, body).await? {
        Ok(body) => {
            let mut request = Request::from_parts(parts, Body::from(body));
            request.extensions_mut().insert(signer);
            Ok(next.run(request).await)
        }
        Err(rejection) => Ok(rejection),
    }
}

/// Returns the whole body, or the response for a body over the route's limit.
async fn whole(parts: &Parts, body: Body) -> Result<Result<Bytes, Response>, Failure> {
    let expected = digest::expected(&parts.headers)?;
    let mut request = Request::new(body);
    // The route's body limit is one of the extensions.
    *request.extensions_mut() = parts.extensions.clone();
    let upload_max = parts.extensions.get().map(SignedUploads::bytes_max);
    if let Some(bytes_max) = upload_max {
        let bytes_max = usize::try_from(bytes_max.as_u64()).unwrap_or(usize::MAX);
        DefaultBodyLimit::max(bytes_max).apply(&mut request);
    }
    let body = match Bytes::from_request(request, &()).await {
        Ok(body) => body,
        Err(rejection) => {
            let response = rejection.into_response();
            return match upload_max {
                Some(bytes_max) if response.status() == StatusCode::PAYLOAD_TOO_LARGE => {
                    Err(too_large(bytes_max))
                }
                _ => Ok(Err(response)),
            };
        }
    };
    let is_of = digest::is_of(expected, body.clone()).await;
    if !is_of.map_err(Failure::internal)? {
        return Err(Error::Body.into());
    }
    Ok(Ok(body))
}

fn too_large(bytes_max: ByteSize) -> Failure {
    Failure::TooLarge(format!(
        "a signed upload has at most {bytes_max}, which is one picture; \
         send more of them by a session"
    ))
}
