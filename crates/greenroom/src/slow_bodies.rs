use std::task::{Context, Poll};

use greenroom_server::BodyPace;
use http::Request;
use tower_layer::Layer;
use tower_service::Service;

/// Lets clients take any time for the bodies of their requests: a layer for routes that take a
/// stream of messages for longer than 10 s and respond only at its end, as gRPC's client streaming
/// does.
///
/// A route whose response begins before the body ends, as with bidirectional streaming, needs no
/// layer: from then on the client may take any time anyway. The limit for other routes is described
/// at [`Limits::body_rate_min`](crate::Limits). Under another server the layer does nothing.
///
/// ```
/// use axum::{Router, body::Body, routing::post};
/// use greenroom::SlowBodies;
///
/// # async fn collect(_: Body) {}
/// let app: Router = Router::new()
///     .route("/measurements", post(collect)) // a line a minute, all day
///     .route_layer(SlowBodies);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct SlowBodies;

impl<S> Layer<S> for SlowBodies {
    type Service = WithSlowBodies<S>;

    fn layer(&self, inner: S) -> WithSlowBodies<S> {
        WithSlowBodies { inner }
    }
}

/// A service behind [`SlowBodies`].
#[derive(Clone, Copy, Debug)]
pub struct WithSlowBodies<S> {
    inner: S,
}

impl<S, B> Service<Request<B>> for WithSlowBodies<S>
where
    S: Service<Request<B>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> S::Future {
        if let Some(pace) = request.extensions().get::<BodyPace>() {
            pace.lift();
        }
        self.inner.call(request)
    }
}
