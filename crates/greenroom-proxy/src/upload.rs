//! The body of a request on its way to an upstream, which may have to be sent twice.

use std::error::Error;
use std::iter;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::Bytes;
use greenroom_server::{BodyError, BoxError};
use http::{HeaderMap, StatusCode};
use http_body::{Body, Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, LengthLimitError};
use parking_lot::Mutex;
use tokio::time::{Instant, Sleep, sleep, sleep_until};

/// The time for which an upstream may leave an expectation of `100 (Continue)` without response
/// before the body is sent all the same (RFC 9110, 10.1.1).
const CONTINUE_WAIT: Duration = Duration::from_secs(1);

/// Bytes of all the bodies that a proxy keeps at a time: 64 MiB. Beyond it they are streamed.
pub(crate) const KEPT_BYTES_MAX: usize = 64 * 1_024 * 1_024;

/// The bytes that a proxy can keep of bodies.
#[derive(Clone, Debug)]
pub(crate) struct Budget(Arc<AtomicUsize>);

/// Bytes of a budget, until it is dropped.
struct Share {
    budget: Budget,
    bytes: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self(Arc::new(AtomicUsize::new(KEPT_BYTES_MAX)))
    }
}

impl Budget {
    fn share(&self, bytes: usize) -> Option<Share> {
        let take = |left: usize| left.checked_sub(bytes);
        let taken = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        taken.ok()?;
        let budget = self.clone();
        Some(Share { budget, bytes })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.0.fetch_add(self.bytes, Ordering::Relaxed);
    }
}

/// The body of a request, and what is known of its way. Clones are of the same body.
#[derive(Clone)]
pub(crate) struct Upload(Arc<Mutex<State>>);

struct State {
    content: Content,
    /// The number of the try that may read it: earlier ones may not be gone yet.
    tries: u32,
    gate: Gate,
    /// The upstream took or waited for a part then.
    progress: Instant,
    /// The client is waited for, not the upstream.
    is_waiting: bool,
    /// The response to a body that cannot be read.
    fault: Option<StatusCode>,
}

enum Content {
    Kept {
        bytes: Bytes,
        trailers: Option<HeaderMap>,
        unsent: Unsent,
        _share: Option<Share>,
    },
    Streamed {
        body: UnsyncBoxBody<Bytes, BoxError>,
        is_begun: bool,
    },
}

/// The parts of a kept body that a try has still to send.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unsent {
    All,
    Trailers,
    Nothing,
}

/// The gate that holds back a body until the upstream asks for it (`Expect: 100-continue`).
enum Gate {
    Open,
    /// Until `100 (Continue)` comes, or the time is over.
    Closed {
        reader: Option<Waker>,
        due: Pin<Box<Sleep>>,
    },
    /// The upstream has responded without the body, which it does not get any more.
    Refused(Option<Waker>),
    /// The response is over, and with it the connection.
    Abandoned,
}

#[derive(Debug, thiserror::Error)]
#[error("the rest of the request's body is not sent")]
struct NotSent;

impl Upload {
    /// Takes a request's body: up to `kept_max` bytes of known length are received and kept, as far
    /// as the budget allows; all else is streamed.
    ///
    /// # Errors
    ///
    /// The status to respond if a body that is to be kept cannot be read.
    pub(crate) async fn receive<B>(
        body: B,
        kept_max: usize,
        budget: &Budget,
    ) -> Result<Self, StatusCode>
    where
        B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
    {
        let length = body.size_hint().exact();
        let length = length.and_then(|bytes| usize::try_from(bytes).ok());
        let share = length.filter(|bytes| *bytes <= kept_max);
        let share = share.and_then(|bytes| budget.share(bytes));
        let content = if body.is_end_stream() {
            Content::kept(Bytes::new(), None, None)
        } else if share.is_some() {
            let collected = body.collect().await;
            let collected = collected.map_err(|error| status(&error.into()))?;
            let trailers = collected.trailers().cloned();
            Content::kept(collected.to_bytes(), trailers, share)
        } else {
            Content::Streamed {
                body: body.map_err(Into::into).boxed_unsync(),
                is_begun: false,
            }
        };
        let state = State {
            content,
            tries: 0,
            gate: Gate::Open,
            progress: Instant::now(),
            is_waiting: false,
            fault: None,
        };
        Ok(Self(Arc::new(Mutex::new(state))))
    }

    /// Returns the body for the next try. Those of earlier ones yield nothing any more.
    pub(crate) fn begin(&self, expects_continue: bool) -> UploadBody {
        let mut state = self.0.lock();
        state.tries += 1;
        state.progress = Instant::now();
        state.is_waiting = false;
        state.gate = if expects_continue {
            let (reader, due) = (None, Box::pin(sleep(CONTINUE_WAIT)));
            Gate::Closed { reader, due }
        } else {
            Gate::Open
        };
        if let Content::Kept { unsent, .. } = &mut state.content {
            *unsent = Unsent::All;
        }
        UploadBody {
            upload: self.clone(),
            number: state.tries,
        }
    }

    /// Returns `true` if there is no body.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.lock().content.is_end()
    }

    /// Returns the length in bytes, if it is known.
    pub(crate) fn length(&self) -> Option<u64> {
        self.0.lock().content.size_hint().exact()
    }

    /// Returns `true` if another try can send all of it.
    pub(crate) fn can_repeat(&self) -> bool {
        match &self.0.lock().content {
            Content::Kept { .. } => true,
            Content::Streamed { is_begun, .. } => !is_begun,
        }
    }

    /// Returns the status to respond if the client's body could not be read.
    pub(crate) fn fault(&self) -> Option<StatusCode> {
        self.0.lock().fault
    }

    /// Notes that the upstream works on the request.
    pub(crate) fn progressed(&self) {
        self.0.lock().progress = Instant::now();
    }

    /// Lets the body through: the upstream wants it.
    pub(crate) fn open(&self) {
        let mut state = self.0.lock();
        if let Gate::Closed { reader, .. } = &mut state.gate {
            let reader = reader.take();
            state.gate = Gate::Open;
            wake(reader);
        }
    }

    /// Notes that the response has come. What is held back until now is never sent.
    pub(crate) fn responded(&self) {
        let mut state = self.0.lock();
        if let Gate::Closed { reader, .. } = &mut state.gate {
            state.gate = Gate::Refused(reader.take());
        }
    }

    /// Notes that the response is over. A body that was held back ends its connection then, which
    /// cannot be used for another request.
    pub(crate) fn abandon(&self) {
        let mut state = self.0.lock();
        if let Gate::Refused(reader) = &mut state.gate {
            let reader = reader.take();
            state.gate = Gate::Abandoned;
            wake(reader);
        }
    }

    /// Waits until the upstream has made no progress for `limit`. The time in which the client is
    /// waited for does not count.
    pub(crate) async fn stalled(&self, limit: Duration) {
        loop {
            let now = Instant::now();
            let due = {
                let state = self.0.lock();
                let since = if state.is_waiting {
                    now
                } else {
                    state.progress
                };
                since + limit
            };
            if due <= now {
                return;
            }
            sleep_until(due).await;
        }
    }
}

fn wake(reader: Option<Waker>) {
    if let Some(reader) = reader {
        reader.wake();
    }
}

/// Finds the fault in the error of a body, which a router may have wrapped.
fn status(error: &BoxError) -> StatusCode {
    let first: &(dyn Error + 'static) = &**error;
    let mut causes = iter::successors(Some(first), |&error| error.source());
    let fault = causes.find_map(|cause| match cause.downcast_ref::<BodyError>() {
        Some(error) => Some(*error),
        None => cause
            .is::<LengthLimitError>()
            .then_some(BodyError::TooLarge),
    });
    fault.unwrap_or(BodyError::Disconnected).status()
}

impl Content {
    fn kept(bytes: Bytes, trailers: Option<HeaderMap>, share: Option<Share>) -> Self {
        Self::Kept {
            bytes,
            trailers,
            unsent: Unsent::All,
            _share: share,
        }
    }

    fn is_end(&self) -> bool {
        match self {
            Self::Kept {
                bytes,
                trailers,
                unsent,
                ..
            } => match unsent {
                Unsent::All => bytes.is_empty() && trailers.is_none(),
                Unsent::Trailers => trailers.is_none(),
                Unsent::Nothing => true,
            },
            Self::Streamed { body, .. } => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Kept {
                bytes,
                unsent: Unsent::All,
                ..
            } => SizeHint::with_exact(bytes.len() as u64),
            Self::Kept { .. } => SizeHint::with_exact(0),
            Self::Streamed { body, .. } => body.size_hint(),
        }
    }

    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self {
            Self::Kept {
                bytes,
                trailers,
                unsent,
                ..
            } => {
                if *unsent == Unsent::All && !bytes.is_empty() {
                    *unsent = Unsent::Trailers;
                    return Poll::Ready(Some(Ok(Frame::data(bytes.clone()))));
                }
                let trailers = trailers.as_ref().filter(|_| *unsent != Unsent::Nothing);
                *unsent = Unsent::Nothing;
                Poll::Ready(trailers.map(|trailers| Ok(Frame::trailers(trailers.clone()))))
            }
            Self::Streamed { body, is_begun } => {
                let frame = ready!(Pin::new(body).poll_frame(cx));
                *is_begun = true;
                Poll::Ready(frame)
            }
        }
    }
}

impl Gate {
    fn poll_open(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), NotSent>> {
        match self {
            Self::Open => return Poll::Ready(Ok(())),
            Self::Closed { reader, due } => {
                *reader = Some(cx.waker().clone());
                ready!(due.as_mut().poll(cx));
            }
            Self::Refused(reader) => {
                *reader = Some(cx.waker().clone());
                return Poll::Pending;
            }
            Self::Abandoned => return Poll::Ready(Err(NotSent)),
        }
        *self = Self::Open;
        Poll::Ready(Ok(()))
    }
}

/// The body of one try.
pub(crate) struct UploadBody {
    upload: Upload,
    number: u32,
}

impl Body for UploadBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let mut state = self.upload.0.lock();
        if state.tries != self.number {
            return Poll::Ready(Some(Err(NotSent.into())));
        }
        ready!(state.gate.poll_open(cx))?;
        let frame = state.content.poll_frame(cx);
        state.is_waiting = frame.is_pending();
        let frame = ready!(frame);
        state.progress = Instant::now();
        if let Some(Err(error)) = &frame {
            state.fault = Some(status(error));
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.upload.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        self.upload.0.lock().content.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::{Full, StreamBody};
    use tokio::sync::mpsc;

    use super::*;

    type Part = Result<Frame<Bytes>, BodyError>;

    /// A body of unknown length, and the client that sends it.
    async fn streamed() -> (Upload, mpsc::UnboundedSender<Part>) {
        let (client, mut parts) = mpsc::unbounded_channel::<Part>();
        let parts = futures_util::stream::poll_fn(move |cx| parts.poll_recv(cx));
        let upload = Upload::receive(StreamBody::new(parts), 65_536, &Budget::default()).await;
        (upload.expect("a body"), client)
    }

    fn part() -> Frame<Bytes> {
        Frame::data(Bytes::from_static(b"part"))
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_its_time_is_no_stalled_upstream() {
        let (upload, client) = streamed().await;
        let mut body = upload.begin(false);
        let began = Instant::now();
        let limit = Duration::from_mins(1);
        let reading = async {
            sleep(Duration::from_secs(50)).await;
            for _ in 0..3 {
                body.frame().await.expect("a part").expect("no error");
            }
        };
        let sending = async {
            for _ in 0..3 {
                sleep(Duration::from_mins(10)).await;
                client.send(Ok(part())).expect("it is read");
            }
        };
        tokio::select! {
            () = upload.stalled(limit) => panic!("stalled after {:?}", began.elapsed()),
            _ = futures_util::future::join(reading, sending) => {}
        }
        // The next part waits for the upstream to take it.
        let taken = Instant::now();
        client.send(Ok(part())).expect("it is kept");
        upload.stalled(limit).await;
        assert_eq!(taken.elapsed(), limit);
    }

    #[tokio::test]
    async fn a_kept_body_can_be_sent_again_and_a_begun_stream_cannot() {
        let body = || Full::new(Bytes::from_static(b"body"));
        let budget = Budget(Arc::new(AtomicUsize::new(5)));
        let kept = Upload::receive(body(), 4, &budget).await.expect("a body");
        // What finds no room any more is streamed, and so is what is too long.
        let other = Upload::receive(body(), 4, &budget).await.expect("a body");
        other.begin(false).frame().await;
        assert!(!other.can_repeat());
        let mut first = kept.begin(false);
        for _ in 0..2 {
            assert!(kept.can_repeat());
            let again = kept.begin(false).collect().await.expect("a whole body");
            assert_eq!(again.to_bytes(), "body");
        }
        // An earlier try takes nothing from a later one.
        assert!(first.frame().await.expect("an end").is_err());
        drop((kept, first));
        assert_eq!(budget.0.load(Ordering::Relaxed), 5);
        let (upload, client) = streamed().await;
        assert!(upload.can_repeat());
        client.send(Ok(part())).expect("it is kept");
        upload.begin(false).frame().await;
        assert!(!upload.can_repeat());
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_is_held_back_until_it_is_wanted() {
        for opens in [true, false] {
            let (upload, client) = streamed().await;
            client.send(Ok(part())).expect("it is kept");
            let mut body = upload.begin(true);
            let began = Instant::now();
            if opens {
                upload.open();
            }
            body.frame().await.expect("a part").expect("no error");
            assert_eq!(
                began.elapsed(),
                if opens { Duration::ZERO } else { CONTINUE_WAIT }
            );
        }
        let (upload, _client) = streamed().await;
        let mut body = upload.begin(true);
        upload.responded();
        let abandoning = async {
            sleep(Duration::from_mins(1)).await;
            upload.abandon();
        };
        let (frame, ()) = futures_util::future::join(body.frame(), abandoning).await;
        assert!(frame.expect("an end").is_err());
    }
}
