use std::any::Any;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use greenroom_http::RequestHead;
use greenroom_timing::FileOffer;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body::Body;
use pin_project_lite::pin_project;
use tower_service::Service;

use crate::access::Logged;
use crate::app::{App, BoxError};
use crate::body::{Feeder, RequestBody};
use crate::event_loop::{Tick, Ticket};
use crate::proxies::ForwardedFor;
use crate::request_metrics::MeteredRequest;

pin_project! {
    /// One request and its response. It lies on the heap, and its place there is used again, so an
    /// idle connection holds no future.
    pub(crate) struct Exchange<A: App> {
        #[pin]
        state: State<A>,
        // What was received, until the application has the request that is in it.
        head: Option<Box<RequestHead>>,
        // What is told of the request if it fails, is aborted, or is logged.
        pub(super) about: About,
        pub(super) feeder: Option<Feeder>,
        // The client waits for `100 Continue`, which was not sent.
        pub(super) continue_due: bool,
        // Ticks in which the application waited for the client's body.
        pub(super) body_waited: Tick,
        // There while it waits for its turn to move more of a long body.
        pub(super) ticket: Option<Ticket>,
        // Bytes of the request's head, and of its body if that came with it.
        bytes: usize,
    }
}

/// Facts about a request while it is under way.
#[derive(Debug)]
pub(crate) struct About {
    pub(crate) method: Method,
    /// Path and query, as the client sent them.
    pub(crate) target: Bytes,
    pub(crate) since: Tick,
    /// The client, if a trusted proxy sent the request.
    pub(crate) client: Option<ForwardedFor>,
    /// There while the request is under way, if requests are counted.
    pub(crate) metered: Option<MeteredRequest>,
    /// The route that it came to, if somebody counts or logs it.
    pub(crate) route: Option<&'static str>,
    /// There only if it is to be told of, apart, so that else it costs nothing.
    pub(crate) logged: Option<Box<Logged>>,
    /// The response's, once there is one.
    pub(crate) status: Option<StatusCode>,
    pub(crate) sent: u64,
    /// It ended before its response did.
    pub(crate) cut: bool,
}

pin_project! {
    #[project = StateProjection]
    enum State<A: App> {
        Idle,
        Waiting { body: Option<RequestBody> },
        Handling { #[pin] future: <A::Service as Service<Request<RequestBody>>>::Future },
        Responding { #[pin] body: A::Body },
    }
}

/// The result of a handler that has ended.
pub(super) enum Handled {
    /// The response is where it was to be left.
    Response,
    Failed(BoxError),
    Panicked(String),
}

/// The next frame of a response's body.
pub(super) enum Part {
    Data {
        bytes: Bytes,
        last: bool,
        /// A file may be sent in place of the frames that follow.
        offer: Option<Box<FileOffer>>,
    },
    Trailers(Box<HeaderMap>),
    End,
    Failed(BoxError),
    Panicked(String),
}

impl About {
    pub(crate) fn new(method: Method, target: Bytes, since: Tick) -> Self {
        Self {
            method,
            target,
            since,
            client: None,
            metered: None,
            route: None,
            logged: None,
            status: None,
            sent: 0,
            cut: false,
        }
    }

    /// Begins with the next request, of which nothing is told so far. Field by field: what is made
    /// apart is moved here, and it is long.
    pub(super) fn begin(&mut self, method: Method, target: Bytes, since: Tick) {
        self.method = method;
        self.target = target;
        self.since = since;
        self.client = None;
        self.metered = None;
        self.route = None;
        self.logged = None;
        self.status = None;
        self.sent = 0;
        self.cut = false;
    }

    /// Method and path, without the query, which may hold secrets.
    pub(crate) fn route(&self) -> String {
        let end = self.target.iter().position(|&byte| byte == b'?');
        let path = &self.target[..end.unwrap_or(self.target.len())];
        format!("{} {}", self.method, String::from_utf8_lossy(path))
    }

    /// Returns the path, without the query, if it is UTF-8.
    pub(crate) fn path(&self) -> Option<&str> {
        let path = self.target.split(|&byte| byte == b'?').next();
        std::str::from_utf8(path?).ok()
    }
}

impl<A: App> Exchange<A> {
    pub(crate) fn new() -> Self {
        Self {
            state: State::Idle,
            head: None,
            about: About::new(Method::GET, Bytes::new(), 0),
            feeder: None,
            continue_due: false,
            body_waited: 0,
            ticket: None,
            bytes: 0,
        }
    }

    pub(super) fn begin(
        self: Pin<&mut Self>,
        head: Box<RequestHead>,
        body: RequestBody,
        bytes: usize,
    ) {
        let mut this = self.project();
        *this.head = Some(head);
        *this.bytes = bytes;
        *this.body_waited = 0;
        *this.ticket = None;
        this.state.set(State::Waiting { body: Some(body) });
    }

    /// Drops what is left of the request: its handler, its body, its response.
    pub(super) fn clear(self: Pin<&mut Self>) {
        let mut this = self.project();
        *this.head = None;
        *this.feeder = None;
        *this.continue_due = false;
        end(this.state.as_mut(), this.about);
        this.about.metered = None;
    }

    /// Returns the place of the head, once the application has its request.
    pub(super) fn emptied_head(self: Pin<&mut Self>) -> Option<Box<RequestHead>> {
        let this = self.project();
        match *this.state {
            State::Waiting { .. } => None,
            _ => this.head.take(),
        }
    }

    pub(super) fn about(self: Pin<&mut Self>) -> &mut About {
        self.project().about
    }

    pub(super) fn feeder(self: Pin<&mut Self>) -> &mut Option<Feeder> {
        self.project().feeder
    }

    pub(super) fn continue_due(self: Pin<&mut Self>) -> &mut bool {
        self.project().continue_due
    }

    pub(super) fn ticket(self: Pin<&mut Self>) -> &mut Option<Ticket> {
        self.project().ticket
    }

    pub(super) fn body_waited(self: Pin<&mut Self>) -> &mut Tick {
        self.project().body_waited
    }

    /// Bytes of the request that are in memory.
    pub(super) fn held(&self) -> usize {
        self.bytes + self.feeder.as_ref().map_or(0, Feeder::held)
    }

    pub(super) fn is_responding(&self) -> bool {
        matches!(self.state, State::Responding { .. })
    }

    pub(super) fn respond(self: Pin<&mut Self>, body: A::Body) {
        let mut this = self.project();
        end(this.state.as_mut(), this.about);
        this.state.set(State::Responding { body });
    }

    /// Runs the handler for as long as it need not wait. Its response is left in `response`: it is
    /// some hundred bytes, and each function that returned it would copy them.
    pub(super) fn poll_handled(
        self: Pin<&mut Self>,
        service: &mut A::Service,
        cx: &mut Context<'_>,
        response: &mut Option<Response<A::Body>>,
    ) -> Poll<Handled> {
        let this = self.project();
        let run = || poll_service(this.state, this.head, service, cx, response);
        let polled = About::during(Some(this.about), || catch_unwind(AssertUnwindSafe(run)));
        match polled {
            Ok(poll) => poll.map(|result| match result {
                Ok(()) => Handled::Response,
                Err(error) => Handled::Failed(error),
            }),
            Err(panic) => Poll::Ready(Handled::Panicked(message(panic.as_ref()))),
        }
    }

    /// Polls the next frame of the response's body, which may offer the rest of a file with it.
    pub(super) fn poll_part(
        mut self: Pin<&mut Self>,
        takes_file: bool,
        cx: &mut Context<'_>,
    ) -> Poll<Part> {
        let run = || {
            if !takes_file {
                return self.as_mut().poll_body(cx);
            }
            let (mut polled, offered) = FileOffer::during(|| self.as_mut().poll_body(cx));
            if let Poll::Ready(Part::Data { offer, .. }) = &mut polled {
                *offer = offered.map(Box::new);
            }
            polled
        };
        match catch_unwind(AssertUnwindSafe(run)) {
            Ok(poll) => poll,
            Err(panic) => Poll::Ready(Part::Panicked(message(panic.as_ref()))),
        }
    }

    fn poll_body(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Part> {
        let StateProjection::Responding { mut body } = self.project().state.project() else {
            return Poll::Ready(Part::End);
        };
        let frame = match ready!(body.as_mut().poll_frame(cx)) {
            None => return Poll::Ready(Part::End),
            Some(Err(error)) => return Poll::Ready(Part::Failed(error.into())),
            Some(Ok(frame)) => frame,
        };
        Poll::Ready(match frame.into_data() {
            Ok(mut data) => Part::Data {
                bytes: data.copy_to_bytes(data.remaining()),
                last: body.is_end_stream(),
                offer: None,
            },
            Err(frame) => match frame.into_trailers() {
                Ok(trailers) => Part::Trailers(Box::new(trailers)),
                Err(_) => Part::Data {
                    bytes: Bytes::new(),
                    last: false,
                    offer: None,
                },
            },
        })
    }
}

fn poll_service<A: App>(
    mut state: Pin<&mut State<A>>,
    head: &mut Option<Box<RequestHead>>,
    service: &mut A::Service,
    cx: &mut Context<'_>,
    response: &mut Option<Response<A::Body>>,
) -> Poll<Result<(), BoxError>> {
    if let StateProjection::Waiting { body } = state.as_mut().project() {
        ready!(service.poll_ready(cx)).map_err(Into::into)?;
        let (head, body) = head.as_mut().zip(body.take()).expect("called once");
        let request = mem::take(&mut head.request);
        let future = service.call(request.map(|()| body));
        state.set(State::Handling { future });
    }
    let StateProjection::Handling { future } = state.project() else {
        unreachable!("polled after its response");
    };
    match ready!(future.poll(cx)) {
        Ok(ended) => *response = Some(ended),
        Err(error) => return Poll::Ready(Err(error.into())),
    }
    Poll::Ready(Ok(()))
}

/// Drops what the state holds. Destructors of the application run here; a panic in one must not
/// take the connection along.
///
/// The next state is set behind it, where it is made: a state is as large as a handler's future,
/// and would be copied on its way in here.
fn end<A: App>(mut state: Pin<&mut State<A>>, about: &About) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| state.as_mut().set(State::Idle))) {
        let panic = message(panic.as_ref());
        tracing::error!(route = about.route(), panic, "a destructor panicked");
    }
}

/// Returns the message of a panic, if it has one.
pub(crate) fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned())
}
