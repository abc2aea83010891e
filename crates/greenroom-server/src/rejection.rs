//! Rejections: responses that are made in the application's place, and their bodies.

use std::borrow::Cow;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http::header::{
    CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, ETAG, RETRY_AFTER,
    TRANSFER_ENCODING,
};
use http::{Extensions, HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};

use crate::connection::{About, message};
use crate::listen::{BUSY, TOO_MANY, Unread};

/// Most bytes of a [`RejectionBody`], its header fields included; a longer one is not sent, and
/// the default is in its place. A new connection takes this many bytes at once, also on a slow
/// network, so an overloaded server need not wait for anybody whom it rejects.
pub const REJECTION_BYTES_MAX: usize = 8 * 1_024;

/// The media type of a line of text.
const TEXT: &str = "text/plain; charset=utf-8";

/// A response that is made in the application's place: to a message that is no request, to a
/// request beyond a limit, for a handler that panicked.
///
/// [`ServerBuilder::rejection_body`](crate::ServerBuilder::rejection_body) makes bodies for them.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Rejection<'a> {
    /// The status of the response.
    pub status: StatusCode,
    /// The reason as a line of text, without the line's end: the default body.
    pub detail: &'a str,
    /// Seconds after which the client may try again, which the field `Retry-After` says.
    pub retry_after: Option<u64>,
    /// The method of the request; `None` if it was not read, or could not be.
    pub method: Option<&'a Method>,
    /// The path of the request, without its query, as the client sent it; `None` if it was not
    /// read, could not be, or is not UTF-8.
    pub path: Option<&'a str>,
}

impl<'a> Rejection<'a> {
    /// Creates a rejection of no known request, without `Retry-After`.
    #[must_use]
    pub fn new(status: StatusCode, detail: &'a str) -> Self {
        Self {
            status,
            detail,
            retry_after: None,
            method: None,
            path: None,
        }
    }

    pub(crate) fn retry_after(self, seconds: u64) -> Self {
        Self {
            retry_after: Some(seconds),
            ..self
        }
    }

    /// Names the request that is rejected.
    pub(crate) fn of(self, about: &'a About) -> Self {
        Self {
            method: Some(&about.method),
            path: about.path(),
            ..self
        }
    }
}

/// The body of a rejection, and the header fields that describe it.
#[derive(Clone, Debug)]
pub struct RejectionBody {
    headers: HeaderMap,
    bytes: Bytes,
}

impl RejectionBody {
    /// Creates a body of this media type.
    ///
    /// ```
    /// use greenroom_server::RejectionBody;
    ///
    /// let page = RejectionBody::new("text/html; charset=utf-8", "<h1>Not at the moment</h1>");
    /// ```
    ///
    /// # Panics
    ///
    /// If the media type has characters that a header field may not have.
    #[must_use]
    pub fn new(content_type: &'static str, bytes: impl Into<Bytes>) -> Self {
        let body = Self {
            headers: HeaderMap::new(),
            bytes: bytes.into(),
        };
        body.header(CONTENT_TYPE, HeaderValue::from_static(content_type))
    }

    /// Adds a header field, in place of one of the same name. Those that frame the message
    /// (`Content-Length`, `Transfer-Encoding`, `Connection`) are the server's, and are ignored.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        if ![CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING].contains(&name) {
            self.headers.insert(name, value);
        }
        self
    }

    /// Returns the default body: the detail as a line of text.
    fn line(detail: &str) -> Self {
        Self::new(TEXT, format!("{detail}\n"))
    }

    fn size(&self) -> usize {
        let fields = self.headers.iter();
        let fields = fields.map(|(name, value)| name.as_str().len() + value.len() + 4);
        fields.sum::<usize>() + self.bytes.len()
    }
}

/// An extension of a response that makes it a [`Rejection`] with this detail, for libraries that
/// respond in the application's place, such as a layer that limits rates.
#[derive(Clone, Debug)]
pub struct RejectionDetail(pub Cow<'static, str>);

impl RejectionDetail {
    /// Returns the response with this status whose body is the detail as a line of text.
    ///
    /// ```
    /// use greenroom_server::RejectionDetail;
    /// use http::StatusCode;
    ///
    /// let detail = RejectionDetail("too many requests".into());
    /// let response = detail.response(StatusCode::TOO_MANY_REQUESTS);
    /// assert_eq!(response.body(), "too many requests\n");
    /// ```
    #[must_use]
    pub fn response(self, status: StatusCode) -> Response<Bytes> {
        let mut response = Response::new(format!("{}\n", self.0).into());
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(TEXT));
        response.extensions_mut().insert(self);
        response
    }
}

type MakeBody = dyn Fn(&Rejection<'_>) -> Option<RejectionBody> + Send + Sync;

/// Finds the detail of a response that is a rejection; `None` for a response of the application.
pub(crate) type FindDetail = fn(&Extensions) -> Option<Cow<'static, str>>;

/// The responses to rejections, as the application wants them.
#[derive(Clone)]
pub(crate) struct Rejections {
    make_body: Option<Arc<MakeBody>>,
    pub(crate) find_detail: FindDetail,
    /// Sent to connections that are rejected unread; made when the first one is.
    busy: OnceLock<Unread>,
    too_many: OnceLock<Unread>,
}

impl Default for Rejections {
    fn default() -> Self {
        Self {
            make_body: None,
            find_detail: |extensions| {
                let detail = extensions.get::<RejectionDetail>();
                detail.map(|detail| detail.0.clone())
            },
            busy: OnceLock::new(),
            too_many: OnceLock::new(),
        }
    }
}

impl fmt::Debug for Rejections {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = out.debug_struct("Rejections");
        out.field("has_bodies", &self.make_body.is_some());
        out.finish_non_exhaustive()
    }
}

impl Rejections {
    pub(crate) fn set_bodies<F>(&mut self, make_body: F)
    where
        F: Fn(&Rejection<'_>) -> Option<RejectionBody> + Send + Sync + 'static,
    {
        self.make_body = Some(Arc::new(make_body));
    }

    /// Returns the response to what is rejected.
    pub(crate) fn response(&self, rejection: &Rejection<'_>) -> Response<Bytes> {
        let body = self.body(rejection);
        respond(
            rejection,
            body.unwrap_or_else(|| RejectionBody::line(rejection.detail)),
        )
    }

    /// Returns the body in place of a response's own, if that is a rejection and the application
    /// has bodies for them; the response's header is then the one of this body.
    pub(crate) fn replace<B>(&self, response: &mut Response<B>, about: &About) -> Option<Bytes> {
        self.make_body.as_ref()?;
        let detail = (self.find_detail)(response.extensions())?;
        let seconds = response.headers().get(RETRY_AFTER);
        let seconds = seconds.and_then(|seconds| seconds.to_str().ok()?.parse().ok());
        let rejection = Rejection {
            retry_after: seconds,
            ..Rejection::new(response.status(), &detail).of(about)
        };
        let body = self.body(&rejection)?;
        let headers = response.headers_mut();
        // They describe the body that is not sent.
        for name in [CONTENT_ENCODING, CONTENT_LENGTH, ETAG] {
            headers.remove(name);
        }
        for (name, value) in &body.headers {
            headers.insert(name, value.clone());
        }
        Some(body.bytes)
    }

    /// Returns the response for connections that waited too long to be accepted: 503.
    pub(crate) fn busy(&self) -> &Unread {
        let status = StatusCode::SERVICE_UNAVAILABLE;
        let rejection = Rejection::new(status, "the server is behind").retry_after(1);
        self.busy.get_or_init(|| self.unread(&rejection, BUSY))
    }

    /// Returns the response for connections of an address that has too many (RFC 6585, 4): 429.
    pub(crate) fn too_many(&self) -> &Unread {
        let status = StatusCode::TOO_MANY_REQUESTS;
        let rejection = Rejection::new(status, "too many connections").retry_after(1);
        self.too_many
            .get_or_init(|| self.unread(&rejection, TOO_MANY))
    }

    fn unread(&self, rejection: &Rejection<'_>, default: &[u8]) -> Unread {
        match self.body(rejection) {
            Some(body) => Unread::new(&respond(rejection, body)),
            None => Unread::without_body(default),
        }
    }

    fn body(&self, rejection: &Rejection<'_>) -> Option<RejectionBody> {
        let make_body = self.make_body.as_ref()?;
        let body = match catch_unwind(AssertUnwindSafe(|| make_body(rejection))) {
            Ok(body) => body?,
            Err(panic) => {
                let panic = message(panic.as_ref());
                tracing::error!(panic, %rejection.status, "making a rejection's body panicked");
                return None;
            }
        };
        let bytes = body.size();
        if bytes > REJECTION_BYTES_MAX {
            let allowed = REJECTION_BYTES_MAX;
            tracing::error!(bytes, allowed, %rejection.status, "a rejection's body is too long");
            return None;
        }
        Some(body)
    }
}

fn respond(rejection: &Rejection<'_>, body: RejectionBody) -> Response<Bytes> {
    let mut response = Response::new(body.bytes);
    *response.status_mut() = rejection.status;
    *response.headers_mut() = body.headers;
    if let Some(seconds) = rejection.retry_after {
        let seconds = HeaderValue::from(seconds);
        response.headers_mut().insert(RETRY_AFTER, seconds);
    }
    response
}
