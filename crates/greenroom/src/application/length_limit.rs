use std::pin::pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use greenroom_server::BoxError;
use http_body::Body;
use http_body_util::{Full, Limited};

/// Returns an `http_body_util::LengthLimitError`, which only a body over its limit makes.
pub(super) fn length_limit_error() -> BoxError {
    let body = pin!(Limited::new(Full::new(Bytes::from_static(b"?")), 0));
    match body.poll_frame(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Some(Err(error))) => error,
        _ => unreachable!("a byte is more than none"),
    }
}
