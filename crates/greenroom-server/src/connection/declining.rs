//! Requests that are well formed, and that the server has no room for: no application sees them.

use bytes::Bytes;
use greenroom_http::{BodyLength, BodySize, RequestHead};
use http::header::{HOST, LOCATION};
use http::uri::Authority;
use http::{HeaderValue, Request, Response, StatusCode};

use super::closing::Closing;
use super::requesting::DISCARDED_BYTES_MAX;
use super::{About, Connection, Scratch, Turn};
use crate::access;
use crate::addresses::TooMany;
use crate::app::App;
use crate::proxies::{ForwardedFor, Sender};
use crate::rejection::Rejection;

/// The port of HTTPS, where a URL names none.
const HTTPS_PORT: u16 = 443;

/// The reason for declining a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Declined {
    pub(crate) status: StatusCode,
    retry_after: u64,
    detail: &'static str,
    /// `true` if a connection of HTTP/1 ends with it, which frees what it holds.
    closes: bool,
}

pub(crate) const OUT_OF_MEMORY: Declined = Declined {
    status: StatusCode::SERVICE_UNAVAILABLE,
    retry_after: 1,
    detail: "too much is under way",
    closes: true,
};

impl Declined {
    pub(crate) fn rejection(&self) -> Rejection<'static> {
        Rejection::new(self.status, self.detail).retry_after(self.retry_after)
    }
}

impl From<TooMany> for Declined {
    fn from(too_many: TooMany) -> Self {
        Self {
            status: StatusCode::TOO_MANY_REQUESTS,
            retry_after: too_many.retry_after,
            detail: "too many requests",
            closes: false,
        }
    }
}

impl<A: App> Connection<A> {
    /// Tells the server how much the connection holds while it waits.
    pub(super) fn note_held(&mut self) {
        let exchange = self.exchange.as_ref();
        let of_request = exchange.map_or(0, |exchange| exchange.held());
        let held = self.kept.len() + self.outbox.kept() + self.socket.held() + of_request;
        let held = u32::try_from(held).unwrap_or(u32::MAX);
        if held != self.held {
            let memory = &self.home.memory;
            memory.change(self.held as usize, held as usize);
            self.held = held;
        }
    }

    /// Counts a request of `client`, or else of the peer; an error if there is no room for it.
    pub(super) fn admit(&self, client: Option<ForwardedFor>) -> Result<(), Declined> {
        if self.home.memory.is_full() {
            self.home.meter.count_declined("memory");
            return Err(OUT_OF_MEMORY);
        }
        let address = match self.sender {
            Sender::Client => self.peer.map(|peer| peer.ip()),
            Sender::TrustedProxy => client.map(|client| client.ip),
        };
        self.home.addresses.request(address).map_err(|too_many| {
            self.home.meter.count_declined("address_requests");
            too_many.into()
        })
    }

    /// Returns `true` if a head that is only half there is waited for.
    pub(super) fn may_wait_for_head(&self) -> bool {
        let is_full = self.home.memory.is_full_beside(self.held as usize);
        if is_full {
            self.home.meter.count_declined("memory");
        }
        !is_full
    }

    /// Tells the client to ask again later. The connection is kept if what follows of the request
    /// can be passed over.
    pub(super) fn decline(
        &mut self,
        declined: &Declined,
        head: &mut RequestHead,
        scratch: &mut Scratch,
    ) -> Turn<A> {
        if declined.closes {
            self.http.close_after_response();
        }
        let rejection = Rejection {
            method: Some(head.request.method()),
            path: Some(head.request.uri().path()),
            ..declined.rejection()
        };
        let response = self.home.settings.rejections.response(&rejection);
        self.respond_to(head, response, scratch)
    }

    /// Returns `true` if a CA asks whether the name is ours (RFC 8555, 8.3), which it does without
    /// TLS, and the application is to respond to that.
    pub(super) fn is_for_application(&self, head: &RequestHead) -> bool {
        self.home.settings.challenges.is_none() && is_of_ca(head)
    }

    /// Sends the client on to where there is TLS. Without a `Host`, nobody knows where that is. A
    /// CA gets what it asks for.
    pub(super) fn redirect(&mut self, head: &mut RequestHead, scratch: &mut Scratch) -> Turn<A> {
        if is_of_ca(head) {
            let response = self.home.settings.challenges.response(&head.request);
            return self.respond_to(head, response, scratch);
        }
        let port = self.home.settings.https_port;
        let Some(location) = location(&head.request, port) else {
            let detail = "this port sends clients on to https, and needs a Host for that";
            let rejection = Rejection::new(StatusCode::BAD_REQUEST, detail);
            let response = self.home.settings.rejections.response(&rejection);
            return self.respond_to(head, response, scratch);
        };
        let mut response = Response::new(Bytes::new());
        *response.status_mut() = StatusCode::PERMANENT_REDIRECT;
        response.headers_mut().insert(LOCATION, location);
        self.respond_to(head, response, scratch)
    }

    /// Sends a response of the server's own to a request, whose body is passed over.
    fn respond_to(
        &mut self,
        head: &mut RequestHead,
        mut response: Response<Bytes>,
        scratch: &mut Scratch,
    ) -> Turn<A> {
        let (method, target) = (head.request.method().clone(), head.target.clone());
        let mut about = About {
            metered: self.meter(&head.request),
            logged: self.tell(&mut head.request),
            status: Some(response.status()),
            ..About::new(method, target, self.home.now())
        };
        about.respond(response.headers_mut());
        let too_long =
            matches!(head.body, BodyLength::Exact(bytes) if bytes > DISCARDED_BYTES_MAX as u64);
        // A client that was not told to go on may or may not send its body.
        if head.upgrade || head.expects_continue || too_long || self.is_leaving() {
            self.http.close_after_response();
        }
        let body = response.body();
        let size = BodySize::Exact(body.len() as u64);
        let context = self.home.context.borrow();
        self.http
            .respond(&response, size, &context, &mut scratch.out);
        let sent = self.http.data(body.len(), &mut scratch.out).length;
        scratch.out.extend_from_slice(&body[..sent]);
        // Nothing of it is missing.
        let _whole = self.http.finish(None, &mut scratch.out);
        drop(context);
        about.sent = sent as u64;
        access::end(&mut about, self.peer);
        self.responded = true;
        self.waiting.over(self.home.now());
        if !self.http.keeps_alive() {
            self.closing = Closing::Linger;
        }
        Turn::Again
    }
}

fn is_of_ca(head: &RequestHead) -> bool {
    let path = head.request.uri().path();
    path.starts_with("/.well-known/acme-challenge/")
}

/// Returns the same request's URL by `https`.
fn location(request: &Request<()>, port: Option<u16>) -> Option<HeaderValue> {
    let host = request.headers().get(HOST)?;
    let host = Authority::try_from(host.as_bytes()).ok()?;
    let target = request.uri().path_and_query()?.as_str();
    // That of `OPTIONS *` is no path.
    let target = if target == "*" { "/" } else { target };
    let port = port.filter(|port| *port != HTTPS_PORT);
    let port = port.map_or(String::new(), |port| format!(":{port}"));
    HeaderValue::try_from(format!("https://{}{port}{target}", host.host())).ok()
}
