use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes};
use http_body::{Body as _, Frame, SizeHint};

use super::trip::{Back, Trip};
use super::{Account, Early, Polled};
use crate::stage::JoinHandle;

/// The body of a placed route's response, polled on the loop or on the stage. If it is dropped
/// while on the stage, it is dropped there, within the runtime that serves it. A destructor that
/// panics costs nothing else here or there.
#[derive(Debug)]
pub(super) struct PlacedBody {
    at: At,
    /// The result of a poll that was made before it was placed.
    first: Option<Early>,
    /// The size hint to give while the first frame is kept here, or the body is away.
    size_hint: SizeHint,
}

#[derive(Debug)]
enum At {
    Away(JoinHandle<Back>),
    Ended,
    Home(Trip),
}

impl PlacedBody {
    pub(super) fn new(body: Body, first: Option<Early>, account: Account) -> Self {
        let size_hint = match first.as_ref().map(|first| &first.polled) {
            Some(Some(Ok(frame))) => with_frame(body.size_hint(), frame),
            _ => SizeHint::default(),
        };
        Self {
            at: At::Home(Trip { body, account }),
            first,
            size_hint,
        }
    }

    /// Sends the body to the stage, if the next poll is to be there and there is one.
    fn depart_if_due(&mut self) {
        let At::Home(trip) = &self.at else { return };
        let account = &trip.account;
        let Some(stage) = account
            .origin
            .stage()
            .filter(|_| account.is_on_stage())
            .cloned()
        else {
            return;
        };
        self.size_hint = trip.body.size_hint();
        if let At::Home(trip) = mem::replace(&mut self.at, At::Ended) {
            self.at = At::Away(trip.depart(&stage));
        }
    }

    /// Drops the body.
    fn end(&mut self) {
        if let At::Home(trip) = mem::replace(&mut self.at, At::Ended) {
            trip.end();
        }
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Polled> {
        self.depart_if_due();
        if let At::Away(spawned) = &mut self.at {
            let back = ready!(Pin::new(spawned).poll(cx));
            let back = match back {
                Ok(back) => back,
                Err(error) => return Poll::Ready(Some(Err(axum::Error::new(error)))),
            };
            self.at = At::Home(back.trip);
            if let Some(early) = back.ready {
                return Poll::Ready(early.give());
            }
        }
        match &mut self.at {
            At::Home(trip) => trip.poll_home(cx),
            At::Away(_) | At::Ended => Poll::Ready(None),
        }
    }
}

impl Drop for PlacedBody {
    fn drop(&mut self) {
        self.end();
    }
}

impl http_body::Body for PlacedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Polled> {
        let polled = match self.first.take() {
            Some(first) => first.give(),
            None => ready!(self.poll_next(cx)),
        };
        if !matches!(polled, Some(Ok(_))) {
            self.end();
        }
        Poll::Ready(polled)
    }

    fn is_end_stream(&self) -> bool {
        match &self.at {
            _ if self.first.is_some() => false,
            At::Away(_) => false,
            At::Ended => true,
            At::Home(trip) => trip.body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.at {
            _ if self.first.is_some() => self.size_hint,
            At::Away(_) => self.size_hint,
            At::Ended => SizeHint::with_exact(0),
            At::Home(trip) => trip.body.size_hint(),
        }
    }
}

/// Returns the hint of a body of which this frame was taken already.
fn with_frame(rest: SizeHint, frame: &Frame<Bytes>) -> SizeHint {
    let bytes = frame.data_ref().map_or(0, |data| data.len() as u64);
    let mut hint = SizeHint::default();
    hint.set_lower(rest.lower().saturating_add(bytes));
    if let Some(upper) = rest.upper() {
        hint.set_upper(upper.saturating_add(bytes));
    }
    hint
}
