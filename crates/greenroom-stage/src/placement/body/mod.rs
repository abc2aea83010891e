//! Placement of response bodies: a body is work too, polled on the loop or on a stage, and its poll
//! time is its route's.
//!
//! A body that is whole in memory stays as it is. Any other begins where its route runs. On the
//! loop it is watched as a handler is. On a stage each frame is a run of its own, made when the
//! server asks for it, so that at most one is ahead of the client. [`Pace`] decides when it moves.

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
use greenroom_timing::FileOffer;
use http_body::Frame;

/// The result of a poll of a body that is ready; `None` is its end.
type Polled = Option<Result<Frame<Bytes>, axum::Error>>;

/// The result of a poll by another than the connection, and the file that was offered with it.
#[derive(Debug)]
pub(in crate::placement) struct Early {
    polled: Polled,
    offer: Option<FileOffer>,
}

impl Early {
    /// Gives the result to the connection, and makes it the offer.
    fn give(self) -> Polled {
        if let Some(offer) = self.offer {
            offer.again();
        }
        self.polled
    }
}
