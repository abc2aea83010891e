//! One request and its response: queued or rejected, sent to a worker, and to another if that one
//! is lost before it began.

use std::future::poll_fn;
use std::mem;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use greenroom_server::{BoxError, RejectionDetail, RequestHandle};
use greenroom_stage::{Client, Rejected};
use http::header::{CONTENT_LENGTH, RETRY_AFTER, TRANSFER_ENCODING};
use http::request::Parts;
use http::{Extensions, HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body::Body;

use crate::body::ResponseBody;
use crate::environment::{self, ConnectionEnvironment};
use crate::gateway::Gateway;
use crate::link::{Call, Head, Lost, Malformed, NoResponse, WorkerResponse};
use crate::pool::{Admission, Ending, Origin, Pool, Route, Run, Worker};
use crate::sent_file::FileBody;
use crate::timed::Timed;
use crate::upgrade::{self, UpgradeError, Wish};
use crate::upload::{Upload, UploadError};

/// The number of workers that a request is given to before the response is 502.
const WORKERS_MAX: usize = 2;

/// The seconds after which a client may try again if there was no space for its body.
const UPLOADS_RETRY_AFTER: u64 = 1;

/// The number of times that a request is recalled from a blocked worker before it stays there.
const RECALLS_MAX: usize = 1;

/// A request on its way through an application.
pub(crate) struct Exchange {
    gateway: Gateway,
    connection: Rc<ConnectionEnvironment>,
    /// The bytes of the path that are `SCRIPT_NAME`.
    script_bytes: usize,
}

impl Exchange {
    pub(crate) fn new(
        gateway: Gateway,
        connection: Rc<ConnectionEnvironment>,
        script_bytes: usize,
    ) -> Self {
        Self {
            gateway,
            connection,
            script_bytes,
        }
    }

    pub(crate) async fn run<B>(self, request: Request<B>) -> Response<ResponseBody>
    where
        B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
    {
        let (mut parts, body) = request.into_parts();
        if parts.method == Method::CONNECT {
            return plain(StatusCode::NOT_IMPLEMENTED, "PSGI has no CONNECT");
        }
        if let Err(unfit) = environment::check(&parts.uri) {
            return plain(StatusCode::BAD_REQUEST, unfit);
        }
        let wish = upgrade::wish(&mut parts);
        let limits = &self.gateway.settings().limits;
        let (bytes_max, memory_max) = (limits.body_bytes_max, limits.body_memory_max);
        let uploads = self.gateway.uploads();
        // The whole body before a run, so that a slow client holds no worker.
        let upload = match Upload::receive(body, bytes_max, memory_max, uploads).await {
            Ok(upload) => upload,
            Err(error) => return not_received(&parts, &error),
        };
        let outcome = match wish {
            // One with a body does not leave HTTP, whatever it offers. hyper would let it.
            Some(wish) if matches!(upload, Upload::None) => self.upgrade(&mut parts, wish).await,
            _ => self.ask(&mut parts, &upload).await,
        };
        outcome.unwrap_or_else(|rejection| rejection)
    }

    async fn ask(
        &self,
        parts: &mut Parts,
        upload: &Upload,
    ) -> Result<Response<ResponseBody>, Response<ResponseBody>> {
        let route = Route::of(&parts.method, parts.uri.path());
        let client = self.client(parts);
        let timed = Timed::of(&parts.extensions);
        let (mut workers, mut recalls) = (0, 0);
        loop {
            let run = timed
                .admitted(self.admitted(Origin { route, client }))
                .await?;
            let worker = Arc::clone(run.worker());
            let tell = |out: &mut Vec<u8>| self.tell(out, parts, upload);
            let recallable = recalls < RECALLS_MAX && parts.method.is_idempotent();
            let call = Call::begin(run, tell, &upload.input(), recallable);
            let responding = poll_fn(|cx| poll_final(&call, &parts.extensions, cx));
            let lost = match timed.worked(&worker, responding).await {
                Ok(response) => {
                    let response = respond(response, call, parts);
                    return response
                        .map_err(|malformed| self.forbidden(&malformed, &worker, parts));
                }
                Err(NoResponse::Recalled) => {
                    recalls += 1;
                    continue;
                }
                Err(NoResponse::Lost(lost)) => lost,
                Err(NoResponse::Aborted) => return Err(application_failed()),
                Err(NoResponse::Malformed(malformed)) => {
                    return Err(self.forbidden(&malformed, &worker, parts));
                }
            };
            workers += 1;
            if workers == WORKERS_MAX || !may_repeat(lost, &parts.method) {
                return Err(self.lost(lost, &worker, parts));
            }
        }
    }

    async fn upgrade(
        &self,
        parts: &mut Parts,
        wish: Wish,
    ) -> Result<Response<ResponseBody>, Response<ResponseBody>> {
        let (route, client) = (Route::LEAVING, self.client(parts));
        let mut workers = 0;
        loop {
            let run = self.admitted(Origin { route, client }).await?;
            let worker = Arc::clone(run.worker());
            let tell = |out: &mut Vec<u8>| self.tell(out, parts, &Upload::None);
            let lost = match upgrade::ask(run, tell).await {
                Ok(upgrade::Outcome::Raw(raw)) => {
                    let opened = raw.open(wish);
                    return opened.map_err(|error| self.not_upgraded(&error, &worker, parts));
                }
                Ok(upgrade::Outcome::Call(response, call)) => {
                    let response = respond(response, call, parts);
                    return response
                        .map_err(|malformed| self.forbidden(&malformed, &worker, parts));
                }
                Err(UpgradeError::NoResponse(NoResponse::Lost(lost))) => lost,
                Err(UpgradeError::Unreachable(error)) => {
                    let (worker, pid) = (worker.key, worker.pid);
                    tracing::warn!(target: "psgi", worker, %pid, %error, "it cannot be reached");
                    Lost::Unsent
                }
                Err(error) => return Err(self.not_upgraded(&error, &worker, parts)),
            };
            workers += 1;
            if workers == WORKERS_MAX || !may_repeat(lost, &parts.method) {
                return Err(self.lost(lost, &worker, parts));
            }
        }
    }

    /// Logs why a request that asks to leave HTTP has no response of the application, and returns
    /// one.
    fn not_upgraded(
        &self,
        error: &UpgradeError,
        worker: &Worker,
        parts: &Parts,
    ) -> Response<ResponseBody> {
        if let UpgradeError::NoResponse(NoResponse::Malformed(malformed)) = error {
            return self.forbidden(malformed, worker, parts);
        }
        let (application, route) = (self.gateway.settings().name(), route(parts));
        let (worker, pid) = (worker.key, worker.pid);
        tracing::error!(
            target: "psgi",
            %error, application, worker, %pid, route,
            "an upgrade failed"
        );
        match error {
            UpgradeError::Io(_) => bad_gateway(),
            _ => application_failed(),
        }
    }

    fn tell(&self, out: &mut Vec<u8>, parts: &Parts, upload: &Upload) {
        // A body of no bytes is told where the client told it: by the field, as CGI has it.
        let told = || parts.headers.contains_key(CONTENT_LENGTH).then_some(0);
        let body_bytes = upload.length().or_else(told);
        environment::append(out, parts, &self.connection, self.script_bytes, body_bytes);
    }

    /// Returns the client of this request: the one that the settings' key names, else the peer.
    fn client(&self, parts: &Parts) -> Client {
        let peer = self.connection.client(parts);
        let key = self.gateway.settings().client_key.as_ref();
        let told = key.and_then(|key| peer.within(|| key.client(parts)));
        told.unwrap_or(peer)
    }

    /// Acquires a run of a worker, at once or after a wait; the error is the 503.
    async fn admitted(&self, origin: Origin) -> Result<Run, Response<ResponseBody>> {
        match self.pool().acquire(origin) {
            Admission::Run(run) => Ok(run),
            Admission::Wait(ticket) => ticket.turn().await.map_err(overloaded),
            Admission::Rejected(rejected) => Err(overloaded(rejected)),
        }
    }

    fn pool(&self) -> &Arc<Pool> {
        self.gateway.pool()
    }

    /// Logs that the worker that had the request is gone, and returns the response.
    fn lost(&self, lost: Lost, worker: &Worker, parts: &Parts) -> Response<ResponseBody> {
        let (application, route) = (self.gateway.settings().name(), route(parts));
        let (worker, pid) = (worker.key, worker.pid);
        match (self.pool().ending(worker), lost) {
            (Ending::Hung, Lost::Begun) => {
                let time = self.gateway.settings().limits.timeout;
                tracing::error!(
                    target: "psgi",
                    application, worker, %pid, route, ?time,
                    "it held its worker up, which was killed"
                );
                plain(StatusCode::GATEWAY_TIMEOUT, "the application took too long")
            }
            (_, Lost::Begun) => {
                tracing::error!(
                    target: "psgi",
                    application, worker, %pid, route,
                    "its worker ended before it responded"
                );
                bad_gateway()
            }
            (_, Lost::Behind | Lost::Unsent) => {
                tracing::warn!(
                    target: "psgi",
                    application, worker, %pid, route,
                    "its worker ended before it began"
                );
                bad_gateway()
            }
        }
    }

    fn forbidden(
        &self,
        malformed: &Malformed,
        worker: &Worker,
        parts: &Parts,
    ) -> Response<ResponseBody> {
        let (application, route) = (self.gateway.settings().name(), route(parts));
        let (worker, pid) = (worker.key, worker.pid);
        tracing::error!(
            target: "psgi",
            %malformed, application, worker, %pid, route,
            "a response that HTTP forbids"
        );
        application_failed()
    }
}

/// Returns `true` if another worker may get a lost request. One that was never sent may be sent
/// again; one that was not begun only if it is idempotent (RFC 9110, section 9.2.2), because its
/// worker cannot confirm that it was not.
fn may_repeat(lost: Lost, method: &Method) -> bool {
    match lost {
        Lost::Unsent => true,
        Lost::Behind => method.is_idempotent(),
        Lost::Begun => false,
    }
}

fn poll_final(
    call: &Call,
    extensions: &Extensions,
    cx: &mut Context<'_>,
) -> Poll<Result<WorkerResponse, NoResponse>> {
    call.poll_response(cx, |head| {
        // A client that cannot get it early gets only the final response.
        let _sent = RequestHandle::of(extensions).map(|request| {
            request.send_informational_spelled(head.status, &head.headers, &head.names)
        });
    })
}

/// Returns the response to a client. A body that the application has chunked is decoded: the server
/// frames bodies by itself, and not all clients know chunks (RFC 9112, 6.1).
fn respond(
    response: WorkerResponse,
    call: Call,
    parts: &mut Parts,
) -> Result<Response<ResponseBody>, Malformed> {
    let (mut head, body) = begun(response, call);
    let is_chunked = take_chunked(&mut head.headers)?;
    let body = match body {
        _ if parts.method == Method::HEAD => ResponseBody::of_head(),
        body if is_chunked && has_content(head.status) => body.dechunked(route(parts))?,
        body => body,
    };
    let mut response = Response::new(body);
    *response.status_mut() = head.status;
    *response.headers_mut() = head.headers;
    // Those of the request are not needed any more, and may have allocated a table already.
    let mut extensions = mem::take(&mut parts.extensions);
    extensions.clear();
    extensions.insert(head.names);
    *response.extensions_mut() = extensions;
    Ok(response)
}

/// Splits a response into its head and its body.
fn begun(response: WorkerResponse, call: Call) -> (Head, ResponseBody) {
    match response {
        WorkerResponse::Whole(head, bytes) => (head, ResponseBody::whole(bytes)),
        WorkerResponse::Streamed(head) => (head, ResponseBody::streamed(call)),
        WorkerResponse::File(head, sent) => match FileBody::open(call.worker().pid, &sent) {
            Ok(file) => {
                call.release_file();
                (head, ResponseBody::file(file))
            }
            Err(error) => {
                tracing::debug!(target: "psgi", %error, "a file is streamed by its worker");
                call.refuse_file();
                (head, ResponseBody::streamed(call))
            }
        },
    }
}

/// Removes the fields of a chunked body and returns `true` if there were any.
fn take_chunked(headers: &mut HeaderMap) -> Result<bool, Malformed> {
    if !headers.contains_key(TRANSFER_ENCODING) {
        return Ok(false);
    }
    let codings: Vec<_> = headers.get_all(TRANSFER_ENCODING).iter().collect();
    match codings[..] {
        [coding] if coding.as_bytes().eq_ignore_ascii_case(b"chunked") => {}
        [coding] if coding.as_bytes().eq_ignore_ascii_case(b"identity") => {
            headers.remove(TRANSFER_ENCODING);
            return Ok(false);
        }
        _ => {
            let codings = codings
                .iter()
                .map(|coding| String::from_utf8_lossy(coding.as_bytes()));
            return Err(Malformed::Coding(codings.collect::<Vec<_>>().join(", ")));
        }
    }
    headers.remove(TRANSFER_ENCODING);
    // It would be that of the chunks (RFC 9112, 6.3).
    headers.remove(CONTENT_LENGTH);
    Ok(true)
}

/// Returns `true` if a response with this status has content (RFC 9110, 6.4.1); HEAD apart.
fn has_content(status: StatusCode) -> bool {
    !matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
}

/// Returns method and path, without the query, which may hold secrets.
fn route(parts: &Parts) -> String {
    format!("{} {}", parts.method, parts.uri.path())
}

/// Returns the response to a body that could not be received. The server itself responds to a
/// malformed or slow one.
fn not_received(parts: &Parts, error: &UploadError) -> Response<ResponseBody> {
    match error {
        UploadError::Client(error) => plain(error.status(), error),
        UploadError::Full(full) => {
            let mut response = plain(StatusCode::SERVICE_UNAVAILABLE, full);
            let seconds = HeaderValue::from(UPLOADS_RETRY_AFTER);
            response.headers_mut().insert(RETRY_AFTER, seconds);
            response
        }
        UploadError::File(_) => {
            tracing::error!(target: "psgi", %error, route = route(parts), "a request is refused");
            plain(
                StatusCode::INSUFFICIENT_STORAGE,
                "the request's body cannot be stored",
            )
        }
    }
}

pub(crate) fn not_found() -> Response<ResponseBody> {
    plain(StatusCode::NOT_FOUND, "not found")
}

fn application_failed() -> Response<ResponseBody> {
    plain(StatusCode::INTERNAL_SERVER_ERROR, "the application failed")
}

fn bad_gateway() -> Response<ResponseBody> {
    plain(StatusCode::BAD_GATEWAY, "the application's process ended")
}

fn overloaded(rejected: Rejected) -> Response<ResponseBody> {
    let mut response = plain(StatusCode::SERVICE_UNAVAILABLE, "overloaded");
    let seconds = HeaderValue::from(rejected.retry_after);
    response.headers_mut().insert(RETRY_AFTER, seconds);
    response
}

fn plain(status: StatusCode, text: impl std::fmt::Display) -> Response<ResponseBody> {
    let detail = RejectionDetail(text.to_string().into());
    detail.response(status).map(ResponseBody::whole)
}
