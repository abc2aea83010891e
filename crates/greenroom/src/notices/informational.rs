use std::convert::Infallible;

use axum::extract::FromRequestParts;
use greenroom_server::{InformationalError, RequestHandle};
use http::request::Parts;
use http::{HeaderMap, StatusCode};

/// An extractor by which a handler sends informational responses, such as `103 Early Hints`, ahead
/// of its own (RFC 9110, 15.2; RFC 8297). It works on the loop, on a stage, and in tasks that the
/// handler spawns.
///
/// ```
/// use axum::{Router, response::Html, routing::get};
/// use greenroom::Informational;
/// use http::{HeaderMap, HeaderValue, StatusCode, header::LINK};
///
/// async fn page(informational: Informational) -> Html<String> {
///     let style = HeaderValue::from_static("</style.css>; rel=preload; as=style");
///     let hints = HeaderMap::from_iter([(LINK, style)]);
///     // A client that cannot be told early does without.
///     let _ = informational.send(StatusCode::EARLY_HINTS, &hints);
///     Html(render().await)
/// }
///
/// # async fn render() -> String { String::new() }
/// let app: Router = Router::new().route("/", get(page));
/// ```
#[derive(Clone, Debug)]
pub struct Informational(Option<RequestHandle>);

impl Informational {
    /// Sends an informational response, as soon as the connection gets its turn on its loop; in any
    /// case before the response proper. Fields that frame content or concern the connection are
    /// left out.
    ///
    /// # Errors
    ///
    /// [`InformationalError::Status`] unless `status` is from 102 to 199.
    /// [`InformationalError::Now`] once the response has begun or the request is over, for a
    /// client of HTTP/1.0 (which knows no such responses), over HTTP/2, for a request that asks
    /// for an upgrade, and under another server than Greenroom. [`InformationalError::TooMuch`]
    /// while 64 KiB of them wait for the client.
    pub fn send(&self, status: StatusCode, headers: &HeaderMap) -> Result<(), InformationalError> {
        let handle = self.0.as_ref().ok_or(InformationalError::Now)?;
        handle.send_informational(status, headers)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Informational {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(RequestHandle::of(&parts.extensions)))
    }
}
