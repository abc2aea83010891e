use std::cell::Cell;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use greenroom_http::{FieldNames, Rejected, check_http2};
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri, Version};
use http_body::Body;
use hyper::body::Incoming;
use pin_project_lite::pin_project;
use tower_service::Service;

use super::body::{Content, ResponseBody};
use super::http2::{Stream, Streams};
use super::in_flight::Entry;
use super::length;
use super::spelling::Names;
use crate::access::{self, Logged};
use crate::app::{App, BoxError};
use crate::body::{FromHyper, Intake, Noted, RequestBody};
use crate::connection::{About, Declined, OUT_OF_MEMORY, message};
use crate::event_loop::Loop;
use crate::failure;
use crate::proxies::Sender;
use crate::rejection::{Rejection, Rejections};
use crate::request_handle::{Line, during};
use crate::strict::be_strict;

/// The application, as hyper calls it.
pub(super) struct Requests<A: App> {
    home: Rc<Loop<A>>,
    service: A::Service,
    peer: Option<SocketAddr>,
    sender: Sender,
    is_tls: bool,
    is_strict: bool,
    /// Clients are told of HTTP/3, if it is served.
    tells_http3: bool,
    /// Those of an HTTP/2 connection, and what is taken of their bodies.
    streams: Option<(Rc<Streams>, Arc<Intake>)>,
    /// The line of a connection that may become a tunnel; it takes the request's name.
    entry: Option<Arc<Entry>>,
    /// State that it shares with the handle of the request.
    line: Option<Arc<Line>>,
    /// The spelling of its response's field names.
    names: Option<Names>,
}

/// The fate of a connection after its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reuse {
    Kept,
    /// It was to be a tunnel. If it does not become one, it ends: the next request would be read
    /// by another parser than ours.
    TunnelOrEnd,
}

impl<A: App> Requests<A> {
    /// Creates those of a connection, with TLS or without.
    pub(super) fn new(
        home: &Rc<Loop<A>>,
        service: A::Service,
        peer: Option<SocketAddr>,
        is_tls: bool,
    ) -> Self {
        let proxies = &home.settings.trusted_proxies;
        let sender = proxies.sender(peer);
        Self {
            home: Rc::clone(home),
            service,
            peer,
            sender,
            is_tls,
            is_strict: is_tls && home.settings.is_strict,
            tells_http3: is_tls && sender == Sender::Client,
            streams: None,
            entry: None,
            line: None,
            names: None,
        }
    }

    pub(super) fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    /// For an HTTP/2 connection.
    pub(super) fn of_streams(mut self, streams: Rc<Streams>, intake: Arc<Intake>) -> Self {
        self.streams = Some((streams, intake));
        self
    }

    /// For a connection of HTTP/3.
    #[cfg(feature = "http3")]
    pub(super) fn of_http3(mut self) -> Self {
        self.tells_http3 = false;
        self
    }

    /// For a connection that may become a tunnel.
    pub(super) fn of_tunnel(mut self, entry: Arc<Entry>, line: Arc<Line>, names: Names) -> Self {
        self.entry = Some(entry);
        self.line = Some(line);
        self.names = Some(names);
        self
    }

    /// Collects what the log says of a request, and puts its client into its extensions.
    fn about<B>(&self, request: &mut Request<B>) -> About {
        let proxies = &self.home.settings.trusted_proxies;
        let client = proxies.tell(self.sender, self.peer, request);
        let method = request.method().clone();
        let requests = self.home.requests.as_ref();
        let telling = (&*self.home.settings, &self.home.teller);
        About {
            client,
            metered: requests
                .map(|requests| requests.begin(&method, request.version(), self.is_tls)),
            logged: Logged::begin(request, self.sender, telling, (Duration::ZERO, self.is_tls)),
            ..About::new(method, target_of(request.uri()), self.home.now())
        }
    }

    /// Holds a request that came over HTTP/2 or HTTP/3 to the rules for all.
    fn check<B>(&self, request: &mut Request<B>) -> Result<(), Rejected> {
        let is_extended = request.extensions().get::<hyper::ext::Protocol>().is_some();
        let limits = self.home.settings.limits.http();
        check_http2(request, is_extended, &limits)
    }

    /// Returns the response to a request that no application sees.
    fn refuse(
        &self,
        rejected: Rejected,
        method: &Method,
        stream: Option<Rc<Stream>>,
    ) -> Responding<A> {
        tracing::debug!(reason = %rejected, peer = ?self.peer, "refused a request");
        if self.home.settings.telling.access_log {
            access::log_rejection(rejected.status(), self.peer);
        }
        let is_head = *method == Method::HEAD;
        self.responding(State::Refused { rejected, is_head }, stream)
    }

    fn responding(&self, state: State<A>, stream: Option<Rc<Stream>>) -> Responding<A> {
        Responding {
            service: self.service.clone(),
            state,
            noted: None,
            is_strict: self.is_strict,
            tells_http3: self.tells_http3,
            home: Rc::clone(&self.home),
            line: self.line.clone(),
            names: self.names.clone(),
            reuse: match self.entry {
                Some(_) => Reuse::TunnelOrEnd,
                None => Reuse::Kept,
            },
            stream,
            under_way: None,
        }
    }

    /// Counts a request against its client's address; an error if there is no room for it.
    fn admit(&self, about: &About) -> Result<(), Declined> {
        if self.home.memory.is_full() {
            self.home.meter.count_declined("memory");
            return Err(OUT_OF_MEMORY);
        }
        let address = match self.sender {
            Sender::Client => self.peer.map(|peer| peer.ip()),
            Sender::TrustedProxy => about.client.map(|client| client.ip),
        };
        let counted = self.home.addresses.request(address);
        counted.map_err(|too_many| {
            self.home.meter.count_declined("address_requests");
            too_many.into()
        })
    }

    /// Returns the request with a body of ours, and what is noted of that if there is one.
    fn translate(&self, mut request: Request<Incoming>) -> (Request<RequestBody>, Option<Noted>) {
        if request.body().is_end_stream() {
            return (request.map(|_| RequestBody::empty()), None);
        }
        let noted = Noted::default();
        request.extensions_mut().insert(noted.pace.clone());
        let limits = &self.home.settings.limits;
        let open = self.streams.as_ref().map(|(_, intake)| intake.open());
        let of_body = noted.clone();
        let request = request.map(|incoming| {
            RequestBody::from_hyper(FromHyper::new(incoming, limits, of_body, open))
        });
        (request, Some(noted))
    }
}

fn target_of(uri: &Uri) -> Bytes {
    let authority = || uri.authority().map_or("*", |authority| authority.as_str());
    let target = uri.path_and_query();
    let target = target.map_or_else(authority, |target| target.as_str());
    Bytes::copy_from_slice(target.as_bytes())
}

/// Bytes of a request's head, without what stands between its fields.
pub(super) fn head_bytes<B>(request: &Request<B>) -> usize {
    let fields = request.headers().iter();
    let fields = fields.map(|(name, value)| name.as_str().len() + value.len());
    let target = request.uri().path_and_query();
    fields.sum::<usize>() + target.map_or(0, |target| target.as_str().len())
}

impl<A: App> hyper::service::Service<Request<Incoming>> for Requests<A> {
    type Response = Response<ResponseBody<A::Body>>;
    type Error = BoxError;
    type Future = Responding<A>;

    fn call(&self, request: Request<Incoming>) -> Responding<A> {
        let stream = self.streams.as_ref().map(|(streams, _)| streams.begin());
        self.begin(request, stream, |request| self.translate(request))
    }
}

impl<A: App> Requests<A> {
    /// Returns the response to a request that came over HTTP/3; `is_cut` stays `true` until it is
    /// whole.
    #[cfg(feature = "http3")]
    pub(super) fn respond(
        &self,
        request: Request<RequestBody>,
        noted: Option<Noted>,
        is_cut: Rc<Cell<bool>>,
    ) -> Responding<A> {
        let mut responding = self.begin(request, None, |mut request| {
            if let Some(noted) = &noted {
                request.extensions_mut().insert(noted.pace.clone());
            }
            (request, noted)
        });
        if let Some(under_way) = &mut responding.under_way {
            under_way.is_cut = Some(is_cut);
        }
        responding
    }

    fn begin<B>(
        &self,
        mut request: Request<B>,
        stream: Option<Rc<Stream>>,
        translate: impl FnOnce(Request<B>) -> (Request<RequestBody>, Option<Noted>),
    ) -> Responding<A> {
        self.home.count_poll();
        if request.version() >= Version::HTTP_2
            && let Err(rejected) = self.check(&mut request)
        {
            return self.refuse(rejected, request.method(), stream);
        }
        let about = self.about(&mut request);
        let declined = self.admit(&about).err();
        if let Some(stream) = &stream {
            stream.hold_head(head_bytes(&request));
        }
        let line = match &self.entry {
            Some(entry) => {
                entry.rename(about.route());
                None
            }
            None => Some(self.home.in_flight.enter(about.route(), self.peer)),
        };
        let under_way = Some(UnderWay {
            about,
            peer: self.peer,
            stream: stream.clone(),
            is_cut: None,
            has_failed: false,
            line: line.map(Rc::new),
        });
        if let Some(declined) = declined {
            return Responding {
                under_way,
                ..self.responding(State::Declined { declined }, stream)
            };
        }
        self.home.meter.count_request();
        let (request, noted) = translate(request);
        let request = Some(request);
        Responding {
            noted,
            under_way,
            ..self.responding(State::Waiting { request }, stream)
        }
    }
}

/// A request that is under way until its response's last byte.
pub(super) struct UnderWay {
    about: About,
    peer: Option<SocketAddr>,
    stream: Option<Rc<Stream>>,
    /// Of HTTP/3.
    is_cut: Option<Rc<Cell<bool>>>,
    /// The body of its response ended by an error.
    has_failed: bool,
    /// Kept by a tunnel over HTTP/2 as well.
    line: Option<Rc<Entry>>,
}

impl UnderWay {
    pub(super) fn about(&mut self) -> &mut About {
        &mut self.about
    }

    pub(super) fn note_failed(&mut self) {
        self.has_failed = true;
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let of_http2 = self.stream.as_ref().map(|stream| stream.is_cut());
        let of_http3 = self.is_cut.as_ref().map(|is_cut| is_cut.get());
        // hyper asks a body over HTTP/1 for no more than its length, and not for its end.
        let is_cut = of_http2.or(of_http3).unwrap_or(false);
        self.about.cut = is_cut || self.has_failed;
        access::end(&mut self.about, self.peer);
    }
}

pin_project! {
    /// The response to a request that hyper received, as a future.
    pub(super) struct Responding<A: App> {
        service: A::Service,
        #[pin]
        state: State<A>,
        noted: Option<Noted>,
        is_strict: bool,
        tells_http3: bool,
        home: Rc<Loop<A>>,
        line: Option<Arc<Line>>,
        names: Option<Names>,
        reuse: Reuse,
        stream: Option<Rc<Stream>>,
        under_way: Option<UnderWay>,
    }
}

pin_project! {
    #[project = StateProjection]
    enum State<A: App> {
        Declined { declined: Declined },
        // A response to HEAD has no content (RFC 9110, 9.3.2).
        Refused { rejected: Rejected, is_head: bool },
        Waiting { request: Option<Request<RequestBody>> },
        Handling { #[pin] future: <A::Service as Service<Request<RequestBody>>>::Future },
    }
}

impl<A: App> Responding<A> {
    fn poll_service(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Response<A::Body>, BoxError>> {
        let mut this = self.project();
        if let StateProjection::Waiting { request } = this.state.as_mut().project() {
            ready!(this.service.poll_ready(cx)).map_err(Into::into)?;
            let request = request.take().expect("a request is called once");
            let future = this.service.call(request);
            this.state.set(State::Handling { future });
        }
        match this.state.project() {
            StateProjection::Handling { future } => future.poll(cx).map_err(Into::into),
            _ => unreachable!("the service was called"),
        }
    }

    /// Polls for the application's response, or for the server's in its place.
    fn poll_handler(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Response<Content<A::Body>>, BoxError>> {
        let home = Rc::clone(&self.home);
        let mut line = self.as_mut().project().line.take();
        let mut under_way = self.as_mut().project().under_way.take();
        let about = under_way.as_mut().map(|request| &mut request.about);
        let run = || self.as_mut().poll_service(cx);
        let polled = during(&home.lent, &mut line, false, || {
            About::during(about, || catch_unwind(AssertUnwindSafe(run)))
        });
        let this = self.project();
        *this.line = line;
        *this.under_way = under_way;
        let about = this.under_way.as_ref().map(|request| &request.about);
        if let Err(panic) = &polled {
            let route = about.map(About::route).unwrap_or_default();
            failure::log_panic(&message(panic.as_ref()), &route);
        }
        let rejections = &home.settings.rejections;
        let reject = |status, detail: &str| {
            let rejection = Rejection::new(status, detail);
            let rejection = about.map_or(rejection, |about| rejection.of(about));
            respond(rejections, &rejection)
        };
        let rejected = this.noted.as_ref().and_then(|noted| noted.rejected.get());
        Poll::Ready(Ok(match (rejected, polled) {
            (Some(error), _) => reject(error.status(), &error.to_string()),
            (None, Ok(Poll::Pending)) => return Poll::Pending,
            (None, Ok(Poll::Ready(Ok(mut response)))) => {
                match about.and_then(|about| rejections.replace(&mut response, about)) {
                    Some(bytes) => response.map(|_| Content::ours(bytes, is_head(about))),
                    None => response.map(|body| Content::App { body }),
                }
            }
            (None, Ok(Poll::Ready(Err(error)))) => {
                let Some(about) = about else {
                    return Poll::Ready(Err(error));
                };
                let (status, detail) = failure::response_to(&error, about);
                reject(status, detail)
            }
            (None, Err(_)) => reject(StatusCode::INTERNAL_SERVER_ERROR, failure::PANICKED),
        }))
    }

    /// Returns the response as hyper sends it, which ends the request with its last byte.
    fn begin(
        self: Pin<&mut Self>,
        mut response: Response<Content<A::Body>>,
    ) -> Response<ResponseBody<A::Body>> {
        let this = self.project();
        if let Some(noted) = this.noted {
            noted.pace.lift();
        }
        let tunnel = this.under_way.as_ref().is_some_and(|request| {
            let connects =
                request.about.method == Method::CONNECT && response.status().is_success();
            connects || response.status() == StatusCode::SWITCHING_PROTOCOLS
        });
        if *this.reuse == Reuse::TunnelOrEnd && !tunnel {
            let close = HeaderValue::from_static("close");
            response
                .headers_mut()
                .insert(http::header::CONNECTION, close);
        }
        if *this.is_strict {
            be_strict(response.headers_mut());
        }
        if *this.tells_http3 {
            this.home.settings.tell_http3(response.headers_mut());
        }
        let spelled = response.extensions_mut().remove::<FieldNames>();
        if let (Some(names), Some(spelled)) = (this.names, spelled) {
            // There is one response, so nothing is there yet.
            let _there = names.set(spelled);
        }
        let mut under_way = this.under_way.take();
        if let Some(under_way) = &mut under_way {
            under_way.about.status = Some(response.status());
            under_way.about.respond(response.headers_mut());
        }
        let stream = this.stream.take();
        if let Some(stream) = &stream {
            stream.hold_head(0);
            let line = under_way.as_ref().and_then(|request| request.line.as_ref());
            if let Some(line) = line.filter(|_| tunnel) {
                stream.begin_tunnel(line);
            }
        }
        let is_head = is_head(under_way.as_ref().map(|request| &request.about));
        let is_of_http2 = stream.is_some() && under_way.is_some();
        let mut response = response.map(|content| ResponseBody::new(content, stream, under_way));
        length::correct(&mut response, is_head);
        if is_of_http2 {
            leave_out_content(&mut response, is_head);
        } else if response.status() == StatusCode::RESET_CONTENT {
            // hyper would send it, behind a length of 0.
            response.body_mut().leave_out();
        }
        response
    }
}

impl<A: App> Future for Responding<A> {
    type Output = Result<Response<ResponseBody<A::Body>>, BoxError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let response = match &self.state {
            State::Declined { declined } => {
                let rejection = declined.rejection();
                let request = self.under_way.as_ref();
                let rejection = request.map_or(rejection, |request| rejection.of(&request.about));
                respond(&self.home.settings.rejections, &rejection)
            }
            State::Refused { rejected, is_head } => {
                let detail = rejected.to_string();
                let rejection = Rejection::new(rejected.status(), &detail);
                let response = self.home.settings.rejections.response(&rejection);
                let response = response.map(|bytes| Content::ours(bytes, *is_head));
                let stream = self.stream.clone();
                return Poll::Ready(Ok(
                    response.map(|ours| ResponseBody::new(ours, stream, None))
                ));
            }
            State::Waiting { .. } | State::Handling { .. } => {
                ready!(self.as_mut().poll_handler(cx))?
            }
        };
        Poll::Ready(Ok(self.begin(response)))
    }
}

/// Returns the response to a request that is rejected.
fn respond<B>(rejections: &Rejections, rejection: &Rejection<'_>) -> Response<Content<B>> {
    let is_head = rejection.method == Some(&Method::HEAD);
    let response = rejections.response(rejection);
    response.map(|bytes| Content::ours(bytes, is_head))
}

/// Leaves out what hyper would send over HTTP/2, where a response must not have content.
fn leave_out_content<B>(response: &mut Response<ResponseBody<B>>, is_head: bool)
where
    B: Body<Error: Into<BoxError>>,
{
    if is_head {
        length::tell_of_head(response);
    }
    if length::is_without_content(is_head, response.status()) {
        response.body_mut().leave_out();
    }
}

fn is_head(about: Option<&About>) -> bool {
    about.is_some_and(|about| about.method == Method::HEAD)
}
