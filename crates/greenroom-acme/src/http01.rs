//! The responses to HTTP-01 challenges, by plain HTTP.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body::Body;
use http_body_util::{Either, Full};
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use crate::challenges::Challenges;

/// The beginning of the paths that the authority asks for (RFC 8555, 8.3). A token follows it.
pub const PATH_PREFIX: &str = "/.well-known/acme-challenge/";

/// The responses to HTTP-01 challenges: a layer for the service on port 80, or a function for one
/// that has no use for layers.
///
/// As a layer it responds to `GET` and `HEAD` of all paths that begin with [`PATH_PREFIX`], with
/// 404 to tokens that are not asked for now, and passes on everything else. It must stand before a
/// redirect to HTTPS.
#[derive(Clone)]
pub struct Http01 {
    challenges: Arc<Challenges>,
}

/// The body of a response: ours or the inner service's.
pub type Http01Body<B> = Either<Full<Bytes>, B>;

impl Http01 {
    pub(crate) fn new(challenges: Arc<Challenges>) -> Self {
        Self { challenges }
    }

    /// Returns what is to be sent to the authority that asks `host`, with its port or without, for
    /// `path`.
    ///
    /// Returns `None` if the path begins otherwise than [`PATH_PREFIX`], or if no such token is
    /// expected at that host now.
    #[must_use]
    pub fn key_authorization(&self, host: &str, path: &str) -> Option<String> {
        let token = path.strip_prefix(PATH_PREFIX)?;
        let name = host.split_once(':').map_or(host, |(name, _)| name);
        self.challenges.key_authorization(name, token)
    }

    /// Returns the response to a request that is the authority's.
    fn respond<B>(&self, request: &Request<B>) -> Option<Response<Full<Bytes>>> {
        let path = request.uri().path();
        let is_read = [Method::GET, Method::HEAD].contains(request.method());
        if !is_read || !path.starts_with(PATH_PREFIX) {
            return None;
        }
        let found = self.key_authorization(host(request), path);
        let status = match found {
            Some(_) => StatusCode::OK,
            None => StatusCode::NOT_FOUND,
        };
        let text = found.unwrap_or_else(|| "Not Found\n".to_owned());
        let mut response = Response::new(Full::new(Bytes::from(text)));
        *response.status_mut() = status;
        let kind = HeaderValue::from_static("text/plain");
        response.headers_mut().insert(CONTENT_TYPE, kind);
        Some(response)
    }
}

/// The host that the request is for: that of its target, or of the header field.
fn host<B>(request: &Request<B>) -> &str {
    let of_target = request.uri().host();
    let of_field = || request.headers().get(HOST)?.to_str().ok();
    of_target.or_else(of_field).unwrap_or_default()
}

impl<S> Layer<S> for Http01 {
    type Service = Http01Service<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Http01Service {
            http01: self.clone(),
            inner,
        }
    }
}

/// The service of the layer [`Http01`].
#[derive(Clone)]
pub struct Http01Service<S> {
    http01: Http01,
    inner: S,
}

impl<S, B, R> Service<Request<B>> for Http01Service<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    R: Body<Data = Bytes>,
{
    type Response = Response<Http01Body<R>>;
    type Error = S::Error;
    type Future = Http01Future<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let ours = self.http01.respond(&request);
        let inner = ours.is_none().then(|| self.inner.call(request));
        Http01Future { ours, inner }
    }
}

pin_project! {
    /// The future of an [`Http01Service`].
    pub struct Http01Future<F> {
        // To the authority; then there is no inner future.
        ours: Option<Response<Full<Bytes>>>,
        #[pin]
        inner: Option<F>,
    }
}

impl<F, R, E> Future for Http01Future<F>
where
    F: Future<Output = Result<Response<R>, E>>,
{
    type Output = Result<Response<Http01Body<R>>, E>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if let Some(response) = this.ours.take() {
            return Poll::Ready(Ok(response.map(Either::Left)));
        }
        let inner = this.inner.as_pin_mut();
        let inner = inner.expect("not polled after it was ready");
        let response = ready!(inner.poll(context))?;
        Poll::Ready(Ok(response.map(Either::Right)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;
    use tower::ServiceExt;

    /// Responses for the token `abc` at `example.org`.
    fn http01() -> Http01 {
        let challenges = Challenges::default();
        challenges.insert_file("example.org", "abc", "abc.thumb".to_owned());
        Http01::new(Arc::new(challenges))
    }

    #[test]
    fn a_token_is_told_at_its_host_alone() {
        let http01 = http01();
        let path = format!("{PATH_PREFIX}abc");
        let told = Some("abc.thumb".to_owned());
        for host in ["example.org", "EXAMPLE.org", "example.org:80"] {
            assert_eq!(http01.key_authorization(host, &path), told, "{host}");
        }
        for host in ["", "www.example.org", "example.net", "[::1]:80"] {
            assert_eq!(http01.key_authorization(host, &path), None, "{host}");
        }
        for path in ["/", "/abc", PATH_PREFIX, "/.well-known/acme-challenge/abc/"] {
            assert_eq!(
                http01.key_authorization("example.org", path),
                None,
                "{path}"
            );
        }
    }

    #[tokio::test]
    async fn the_layer_responds_to_the_authority_and_passes_on_the_rest() {
        let application = tower::service_fn(async |_: Request<()>| {
            Ok::<_, Infallible>(Response::new(Full::new(Bytes::from("application"))))
        });
        let service = http01().layer(application);
        let respond = async |method: Method, target: &str, host: Option<&str>| {
            let mut request = Request::builder().method(method).uri(target);
            if let Some(host) = host {
                request = request.header(HOST, host);
            }
            let request = request.body(()).expect("a request");
            let response = service.clone().oneshot(request).await.expect("a response");
            let status = response.status().as_u16();
            let body = http_body_util::BodyExt::collect(response.into_body()).await;
            let body = body.expect("a body").to_bytes();
            (status, String::from_utf8_lossy(&body).into_owned())
        };
        let host = Some("example.org");
        let path = format!("{PATH_PREFIX}abc");
        let told = (200, "abc.thumb".to_owned());
        let passed_on = (200, "application".to_owned());
        assert_eq!(respond(Method::GET, &path, host).await, told);
        // As over HTTP/2, or to a proxy.
        let absolute = format!("http://example.org{path}");
        assert_eq!(respond(Method::GET, &absolute, None).await, told);
        assert_eq!(respond(Method::POST, &path, host).await, passed_on);
        assert_eq!(respond(Method::GET, "/abc", host).await, passed_on);
        for (target, host) in [
            (format!("{PATH_PREFIX}other"), host),
            (path.clone(), Some("example.net")),
            (path, None),
        ] {
            assert_eq!(respond(Method::GET, &target, host).await.0, 404, "{target}");
        }
    }
}
