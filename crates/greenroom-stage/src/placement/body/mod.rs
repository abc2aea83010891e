//! The body of a response is work too: where it is polled, and whose busy time that is.
//!
//! A body that is whole in memory stays as it is. Any other begins where its route runs. On the loop
//! it is watched as a handler is. On a stage each frame is a run of its own, asked for when the
//! server wants it, so that at most one is ahead of the client. [`Pace`] says when it moves.

mod account;
mod pace;
mod placed;
mod settled;
mod trip;

pub(super) use settled::Settled;

use account::Account;
use pace::Pace;
use placed::PlacedBody;

use axum::body::Bytes;
use http_body::Frame;

/// What a body is ready with; `None` is its end.
type Polled = Option<Result<Frame<Bytes>, axum::Error>>;
