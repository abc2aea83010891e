use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST, HeaderValue};
use http::uri::Authority;
use http::{Request, Response, StatusCode};

type Respond = dyn Fn(&str, &str) -> Option<String> + Send + Sync;

/// The responses to CAs that ask whether a name is ours (RFC 8555, 8.3).
#[derive(Clone, Default)]
pub(crate) struct Challenges(Option<Arc<Respond>>);

impl Challenges {
    pub(crate) fn new(
        respond: impl Fn(&str, &str) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        Self(Some(Arc::new(respond)))
    }

    pub(crate) fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// Returns the response to a request without TLS: 404 to what nobody knows.
    pub(crate) fn response(&self, request: &Request<()>) -> Response<Bytes> {
        let host = request.headers().get(HOST).map(HeaderValue::as_bytes);
        let host = host.and_then(|host| Authority::try_from(host).ok());
        let host = host.as_ref().map_or("", Authority::host);
        let found = self
            .0
            .as_ref()
            .and_then(|respond| respond(host, request.uri().path()));
        let mut response = Response::new(Bytes::from(found.clone().unwrap_or_default()));
        if found.is_none() {
            *response.status_mut() = StatusCode::NOT_FOUND;
        }
        let media_type = HeaderValue::from_static("application/octet-stream");
        response.headers_mut().insert(CONTENT_TYPE, media_type);
        response
    }
}

impl fmt::Debug for Challenges {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Challenges").finish_non_exhaustive()
    }
}
