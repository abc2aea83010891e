use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::extract::DefaultBodyLimit;
use axum::response::IntoResponse;
use greenroom_server::BodyBytesMax;
use http::{Request, StatusCode};
use http_body::Body as _;
use tower_layer::Layer;
use tower_service::Service;

/// The largest body that a route takes: a layer that sets the server's limit and that of axum's
/// extractors for the routes behind it. Larger bodies are answered with 413.
///
/// ```
/// use axum::{Router, routing::post};
/// use greenroom::BodyLimit;
///
/// let app: Router = Router::new()
///     .route("/video", post(|| async { "thanks" }))
///     .route_layer(BodyLimit::max(1 << 30)); // 1 GiB instead of the server's 2 MiB
/// ```
#[derive(Clone, Copy, Debug)]
pub struct BodyLimit {
    bytes: u64,
}

impl BodyLimit {
    /// At most `bytes`.
    #[must_use]
    pub fn max(bytes: u64) -> Self {
        Self { bytes }
    }

    /// Any size. The client's pace is still watched.
    #[must_use]
    pub fn unlimited() -> Self {
        Self { bytes: u64::MAX }
    }

    fn of_axum(self) -> DefaultBodyLimit {
        match usize::try_from(self.bytes) {
            Ok(bytes) if self.bytes != u64::MAX => DefaultBodyLimit::max(bytes),
            _ => DefaultBodyLimit::disable(),
        }
    }
}

impl<S> Layer<S> for BodyLimit
where
    DefaultBodyLimit: Layer<S>,
{
    type Service = BodyLimited<<DefaultBodyLimit as Layer<S>>::Service>;

    fn layer(&self, inner: S) -> Self::Service {
        BodyLimited {
            inner: self.of_axum().layer(inner),
            bytes: self.bytes,
        }
    }
}

/// A service behind a [`BodyLimit`].
#[derive(Clone, Copy, Debug)]
pub struct BodyLimited<S> {
    inner: S,
    bytes: u64,
}

impl<S> Service<Request<Body>> for BodyLimited<S>
where
    S: Service<Request<Body>>,
    S::Response: IntoResponse,
{
    type Response = axum::response::Response;
    type Error = S::Error;
    type Future = Limited<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        // A body that came with its head was measured by the server's limit only.
        if request.body().size_hint().lower() > self.bytes {
            return Limited::Refused;
        }
        if let Some(limit) = request.extensions().get::<BodyBytesMax>() {
            limit.set(self.bytes);
        }
        Limited::Served(Box::pin(self.inner.call(request)))
    }
}

/// The answer of a service behind a [`BodyLimit`].
#[derive(Debug)]
pub enum Limited<F> {
    /// The body is larger than allowed.
    Refused,
    /// What the service answers.
    Served(Pin<Box<F>>),
}

impl<F, R, E> Future for Limited<F>
where
    F: Future<Output = Result<R, E>>,
    R: IntoResponse,
{
    type Output = Result<axum::response::Response, E>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut *self {
            Self::Refused => {
                let text = "the body is larger than allowed\n";
                Poll::Ready(Ok((StatusCode::PAYLOAD_TOO_LARGE, text).into_response()))
            }
            Self::Served(future) => future
                .as_mut()
                .poll(cx)
                .map(|served| served.map(IntoResponse::into_response)),
        }
    }
}
