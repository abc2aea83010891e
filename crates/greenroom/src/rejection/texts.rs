use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, to_bytes};
use axum::response::Response;
use greenroom_server::RejectionDetail;
use http::header::CONTENT_TYPE;
use http::{Request, StatusCode};
use http_body::Body as _;
use tower_layer::Layer;
use tower_service::Service;

/// Bytes of a text that becomes the detail of a rejection; a longer one is a response of the
/// application, and stays.
const DETAIL_BYTES_MAX: usize = 4_096;

/// Makes rejections of error responses in plain text, so that they get the body that is set by
/// [`rejection_body`](crate::ServerBuilder::rejection_body): a layer for routers, whose extractors,
/// layers and fallbacks respond with text to what they reject (a 422 of `Json`, a 413 of a body
/// limit, a 405).
///
/// A response is one of them if its status is 4xx or 5xx, its media type is `text/plain` or none,
/// and its body has at most 4 KiB. The text is the [detail](crate::Rejection::detail); where there
/// is none, as with a 405, it is the name of the status. Responses of handlers in plain text count
/// too: what is to stay as it is has another media type.
///
/// ```no_run
/// use axum::{Json, Router, routing::post};
/// use greenroom::{Rejection, RejectionBody, TextRejections};
/// use serde_json::json;
///
/// /// A problem (RFC 9457).
/// fn problem(rejection: &Rejection<'_>) -> Option<RejectionBody> {
///     let problem = json!({"status": rejection.status.as_u16(), "detail": rejection.detail});
///     Some(RejectionBody::new("application/problem+json", problem.to_string()))
/// }
///
/// # #[tokio::main]
/// # async fn main() -> std::io::Result<()> {
/// # async fn order(_: Json<u64>) {}
/// let app = Router::new().route("/orders", post(order)).layer(TextRejections);
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:5000").await?;
/// greenroom::serve(listener, app).rejection_body(problem).await
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct TextRejections;

impl<S> Layer<S> for TextRejections {
    type Service = WithTextRejections<S>;

    fn layer(&self, inner: S) -> WithTextRejections<S> {
        WithTextRejections { inner }
    }
}

/// A service behind [`TextRejections`].
#[derive(Clone, Copy, Debug)]
pub struct WithTextRejections<S> {
    inner: S,
}

impl<S, B> Service<Request<B>> for WithTextRejections<S>
where
    S: Service<Request<B>, Response = Response>,
    S::Future: Send + 'static,
{
    type Response = Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let response = self.inner.call(request);
        Box::pin(async move {
            let response = response.await?;
            Ok(mark(response).await)
        })
    }
}

/// Gives an error response in plain text the detail that makes it a rejection.
async fn mark(response: Response) -> Response {
    if !is_text_of_error(&response) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    // A body that fails is lost, and its client gets the name of the status.
    let text = to_bytes(body, DETAIL_BYTES_MAX).await.unwrap_or_default();
    let detail = String::from_utf8_lossy(&text).trim().to_owned();
    parts
        .extensions
        .insert(RejectionDetail(if detail.is_empty() {
            name(parts.status).into()
        } else {
            detail.into()
        }));
    Response::from_parts(parts, Body::from(text))
}

fn is_text_of_error(response: &Response) -> bool {
    let status = response.status();
    let media_type = response.headers().get(CONTENT_TYPE);
    let is_text = media_type.is_none_or(|value| value.as_bytes().starts_with(b"text/plain"));
    let length = response.body().size_hint().exact();
    let is_short = length.is_some_and(|bytes| bytes <= DETAIL_BYTES_MAX as u64);
    (status.is_client_error() || status.is_server_error()) && is_text && is_short
}

fn name(status: StatusCode) -> &'static str {
    status.canonical_reason().unwrap_or("error")
}
