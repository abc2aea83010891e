//! One request and its response: an upstream is chosen, asked, and perhaps another one.

use std::mem;
use std::sync::Arc;

use bytes::Bytes;
use greenroom_server::{BoxError, RequestHandle};
use greenroom_timing::Span;
use http::header::{
    CONNECTION, CONTENT_LENGTH, EXPECT, HOST, TE, TRAILER, TRANSFER_ENCODING, UPGRADE, VIA,
};
use http::request::Parts;
use http::uri::{Authority, PathAndQuery};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body::Body;
use hyper::body::Incoming;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::capture_connection;

use crate::attempt::Attempt;
use crate::headers::{self, Origin};
use crate::rejection;
use crate::response_body::ResponseBody;
use crate::settings::HostHeader;
use crate::shared::Shared;
use crate::target;
use crate::tunnel::{self, Wish};
use crate::upload::Upload;
use crate::upstream::{ConnectionUse, Failure, Permit, chain};

/// A request on its way through a proxy.
pub(crate) struct Exchange {
    pub(crate) shared: Arc<Shared>,
    pub(crate) origin: Origin,
    /// Takes informational responses to the client.
    pub(crate) handle: Option<RequestHandle>,
    /// The span of the request, if its trace is sampled.
    pub(crate) span: Option<Span>,
}

/// A response of an upstream, before its body.
struct Responded {
    response: Response<Incoming>,
    permit: Permit,
    attempt: Attempt,
}

/// A request as upstreams get it.
pub(crate) struct Outgoing {
    pub(crate) method: Method,
    pub(crate) path: PathAndQuery,
    headers: HeaderMap,
    expects_continue: bool,
    upload: Upload,
}

/// A try without a response.
struct Failed {
    failure: Failure,
    error: String,
    /// Its connection had served before, and may just have been closed for its age.
    is_stale: bool,
}

impl Exchange {
    pub(crate) async fn run<B>(self, request: Request<B>) -> Response<ResponseBody>
    where
        B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
    {
        let (parts, body) = request.into_parts();
        let exchanged = self.exchange(parts, body).await;
        exchanged.unwrap_or_else(|refused| refused)
    }

    /// Returns the response of an upstream; the error is one of the proxy's own.
    async fn exchange<B>(
        &self,
        mut parts: Parts,
        body: B,
    ) -> Result<Response<ResponseBody>, Response<ResponseBody>>
    where
        B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
    {
        let shared = &*self.shared;
        if headers::goes_round(&parts.headers, &shared.pseudonym) {
            return Err(shared.loops());
        }
        let wish = tunnel::wish(&mut parts);
        if parts.method == Method::CONNECT {
            let text = "this proxy has no CONNECT";
            return Err(rejection::plain(StatusCode::NOT_IMPLEMENTED, text));
        }
        let uri = target::original(&parts);
        let Some(path) = target::path(uri, &shared.settings) else {
            return Err(rejection::plain(StatusCode::NOT_FOUND, "not found"));
        };
        let host = uri.authority().map(Authority::as_str);
        let host = host.and_then(|host| HeaderValue::from_str(host).ok());
        let host = host.or_else(|| parts.headers.get(HOST).cloned());
        let expects_continue = headers::has_token(&parts.headers, &EXPECT, "100-continue");
        let is_kept = parts.method.is_idempotent() && !expects_continue;
        let kept_max = if is_kept {
            shared.settings.retry_body_bytes_max
        } else {
            0
        };
        let upload = Upload::receive(body, kept_max, &shared.budget).await;
        let upload = upload.map_err(rejection::not_received)?;
        let headers = self.headers(&mut parts, host, wish.is_some(), &upload);
        let outgoing = Outgoing {
            method: parts.method,
            path,
            headers,
            expects_continue: expects_continue && !upload.is_empty(),
            upload,
        };
        let responded = self.ask(&outgoing).await?;
        Ok(self.respond(responded, outgoing.upload, wish))
    }

    /// Returns the header fields for an upstream, made of those of the request.
    fn headers(
        &self,
        parts: &mut Parts,
        host: Option<HeaderValue>,
        has_wish: bool,
        upload: &Upload,
    ) -> HeaderMap {
        let mut headers = mem::take(&mut parts.headers);
        let takes_trailers = headers::has_token(&headers, &TE, "trailers");
        let protocol = headers.get(UPGRADE).filter(|_| has_wish).cloned();
        headers::remove_hop_by_hop(&mut headers);
        headers.remove(CONTENT_LENGTH);
        headers::join_cookies(&mut headers);
        let fields = self.shared.settings.forwarded;
        self.origin.tell(&mut headers, fields, host.as_ref());
        headers.remove(HOST);
        if let Some(host) = host {
            headers.insert(HOST, host);
        }
        headers.append(VIA, self.shared.via.of(parts.version).clone());
        if let Some(protocol) = protocol {
            headers.insert(UPGRADE, protocol);
            headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        } else if takes_trailers {
            headers.insert(TE, HeaderValue::from_static("trailers"));
            headers.insert(CONNECTION, HeaderValue::from_static("te"));
        }
        if upload.is_empty() {
            headers.remove(EXPECT);
            headers.remove(TRAILER);
            // A method that expects content says that there is none (RFC 9110, 8.6).
            if [Method::POST, Method::PUT, Method::PATCH].contains(&parts.method) {
                headers.insert(CONTENT_LENGTH, HeaderValue::from(0));
            }
        } else if upload.length().is_none() || headers.contains_key(TRAILER) {
            // Without it hyper would send no body with GET.
            headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
        }
        headers
    }

    /// Asks upstreams until one responds; the error is the response that tells that none did.
    async fn ask(&self, outgoing: &Outgoing) -> Result<Responded, Response<ResponseBody>> {
        let upstreams = &self.shared.upstreams;
        let mut tried = Vec::new();
        let mut refused = None;
        // A kept connection that was dying says nothing of its upstream, and takes no try away; but
        // there may be no more of them than tries.
        let tries_max = self.shared.settings.tries_max;
        let mut stale = 0;
        for number in 0..tries_max.saturating_mul(2) {
            let Some(mut permit) = upstreams.acquire(&tried, number > 0) else {
                break;
            };
            let mut attempt = Attempt::begin(self.span.as_ref(), outgoing, &permit, number);
            let failed = match self.send(outgoing, &permit, &attempt).await {
                Ok(response) => {
                    self.judge(&response, &mut permit);
                    attempt.responded(response.status());
                    return Ok(Responded {
                        response,
                        permit,
                        attempt,
                    });
                }
                Err(failed) => failed,
            };
            attempt.failed(failed.failure.name());
            drop(attempt);
            if let Some(status) = outgoing.upload.fault() {
                return Err(rejection::not_received(status));
            }
            let is_stale = failed.is_stale && stale < tries_max;
            stale += u32::from(is_stale);
            let has_tries = number + 1 - stale < tries_max;
            let mut is_last = !failed.may_repeat(outgoing) || !has_tries;
            if !failed.is_stale {
                permit.failed(failed.failure, &failed.error);
                tried.push(permit.index());
                is_last |= tried.len() == upstreams.len();
            } else if is_last {
                permit.note(failed.failure, &failed.error);
            }
            refused = Some(rejection::failed(failed.failure));
            if is_last {
                break;
            }
        }
        Err(refused.unwrap_or_else(|| self.shared.busy()))
    }

    /// Notes what a response tells of the health of its upstream.
    fn judge(&self, response: &Response<Incoming>, permit: &mut Permit) {
        let status = response.status();
        if self.shared.settings.is_failure(status) {
            permit.failed(Failure::Status, status.as_str());
        } else {
            permit.responded();
        }
    }

    /// Sends the request to one upstream, and waits for the head of its response.
    async fn send(
        &self,
        outgoing: &Outgoing,
        permit: &Permit,
        attempt: &Attempt,
    ) -> Result<Response<Incoming>, Failed> {
        let upload = &outgoing.upload;
        let authority = permit.authority();
        let Some(uri) = target::uri(permit.scheme(), authority, &outgoing.path) else {
            return Err(Failed::before(format!("{} is no path", outgoing.path)));
        };
        let mut request = Request::new(upload.begin(outgoing.expects_continue));
        *request.method_mut() = outgoing.method.clone();
        *request.uri_mut() = uri;
        *request.headers_mut() = outgoing.headers.clone();
        let headers = request.headers_mut();
        if self.shared.settings.host == HostHeader::Upstream || !headers.contains_key(HOST) {
            let host = HeaderValue::from_str(authority.as_str());
            headers.insert(
                HOST,
                host.map_err(|error| Failed::before(error.to_string()))?,
            );
        }
        attempt.tell(request.headers_mut());
        self.pass_informational(&mut request, upload);
        let mut connection = capture_connection(&mut request);
        let limit = self.shared.settings.response_head_timeout;
        let stalled = async {
            // Until there is a connection, it is `connect_timeout` that counts.
            connection.wait_for_connection_metadata().await;
            upload.progressed();
            upload.stalled(limit).await;
        };
        let response = tokio::select! {
            biased;
            response = permit.client().request(request) => response,
            () = stalled => {
                let error = format!("no progress for {limit:?}");
                return Err(Failed::new(Failure::ResponseHeadTimeout, error));
            }
        };
        upload.responded();
        let response = response.map_err(|error| Failed::of(&error, authority))?;
        let age = ConnectionUse::note(response.extensions());
        if age >= self.shared.settings.connection_age_max
            && let Some(connected) = &*connection.connection_metadata()
        {
            // It is closed behind this response: the next one may go to another address.
            connected.poison();
        }
        check(&response).map_err(|error| Failed::new(Failure::ResponseHead, error.to_owned()))?;
        Ok(response)
    }

    /// Passes on informational responses, and what `100 (Continue)` means for the body. Each is
    /// progress: the upstream works on the request.
    fn pass_informational<B>(&self, request: &mut Request<B>, upload: &Upload) {
        let (upload, handle) = (upload.clone(), self.handle.clone());
        hyper::ext::on_informational(request, move |response| {
            upload.progressed();
            let status = response.status();
            if status == StatusCode::CONTINUE {
                upload.open();
            } else if let Some(handle) = &handle {
                // A client that cannot get it early gets only the final response.
                let _sent = handle.send_informational(status, response.headers());
            }
        });
    }

    /// Returns the response to the client.
    fn respond(
        &self,
        responded: Responded,
        upload: Upload,
        wish: Option<Wish>,
    ) -> Response<ResponseBody> {
        let Responded {
            mut response,
            permit,
            attempt,
        } = responded;
        let settings = &self.shared.settings;
        let upgrade = (response.status() == StatusCode::SWITCHING_PROTOCOLS)
            .then(|| hyper::upgrade::on(&mut response));
        let (mut head, incoming) = response.into_parts();
        let protocol = head.headers.get(UPGRADE).cloned();
        if head.headers.contains_key(TRANSFER_ENCODING) {
            // It would be that of the chunks (RFC 9112, 6.3).
            head.headers.remove(CONTENT_LENGTH);
        }
        headers::remove_hop_by_hop(&mut head.headers);
        let body = match (upgrade, wish) {
            (None, Some(wish)) if wish.is_extended_connect() && head.status.is_success() => {
                // The client would take it for the beginning of the tunnel (RFC 8441, 5).
                permit.note(Failure::ResponseHead, "no 101, which was asked for");
                return rejection::failed(Failure::ResponseHead);
            }
            (None, _) => {
                let idle = settings.body_idle_timeout;
                ResponseBody::streamed(incoming, idle, (permit, attempt), upload)
            }
            (Some(upgrade), Some(wish)) => {
                let idle = settings.tunnel_idle_timeout;
                head.status = wish.grant(upgrade, &mut head.headers, protocol, idle, permit);
                ResponseBody::whole(Bytes::new())
            }
            (Some(_), None) => {
                permit.note(Failure::ResponseHead, "101, which nobody asked for");
                return rejection::failed(Failure::ResponseHead);
            }
        };
        let mut response = Response::new(body);
        *response.status_mut() = head.status;
        *response.headers_mut() = head.headers;
        response
    }
}

/// Refuses a response whose framing could be read in two ways.
fn check(response: &Response<Incoming>) -> Result<(), &'static str> {
    let mut codings = headers::tokens(response.headers(), &TRANSFER_ENCODING);
    let is_chunked = codings.all(|coding| coding.eq_ignore_ascii_case("chunked"));
    is_chunked
        .then_some(())
        .ok_or("a transfer coding that was not asked for")
}

impl Failed {
    fn new(failure: Failure, error: String) -> Self {
        Self {
            failure,
            error,
            is_stale: false,
        }
    }

    /// A request that could not be put together for this upstream.
    fn before(error: String) -> Self {
        Self::new(Failure::Connect, error)
    }

    fn of(error: &legacy::Error, authority: &Authority) -> Self {
        let failure = Failure::of(error, authority);
        let is_stale = failure == Failure::ResponseHead
            && ConnectionUse::has_served(error.connect_info())
            && !is_malformed(error);
        Self {
            failure,
            error: chain(error),
            is_stale,
        }
    }

    /// Returns `true` if an upstream may get the request again (RFC 9110, 9.2.2).
    fn may_repeat(&self, outgoing: &Outgoing) -> bool {
        let is_safe = self.failure.is_before_request() || outgoing.method.is_idempotent();
        is_safe && outgoing.upload.can_repeat()
    }
}

/// Returns `true` if bytes came that are no response.
fn is_malformed(error: &legacy::Error) -> bool {
    let cause = std::error::Error::source(error);
    let cause = cause.and_then(|cause| cause.downcast_ref::<hyper::Error>());
    cause.is_some_and(hyper::Error::is_parse)
}
