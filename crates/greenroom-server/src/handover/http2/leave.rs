use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::timeout;

use super::turns::Turns;
use crate::connection::LINGER_BYTES_MAX;
use crate::handover::io::Rewound;

/// Bytes that are read at once of what nobody wants.
const DISCARD_BYTES: usize = 4 * 1_024;

/// The time for which a client is heard that is told to leave.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Patience {
    /// In which it says nothing.
    pub(super) pause: Duration,
    /// In all.
    pub(super) time: Duration,
}

/// Ends a connection in order: sends what is left, within `time_to_send`, ends the server's side,
/// and reads what the client still says until it ends its own.
///
/// A client opens windows for as long as it reads. A socket that is closed while such frames come
/// is reset, and the reset may overtake the last responses.
pub(super) async fn take_leave(
    mut io: Rewound,
    mut turns: Turns,
    patience: Patience,
    time_to_send: Duration,
) {
    // Sooner than that the socket gives up who takes nothing of it, as at any other time.
    let flushing = poll_fn(|cx| Pin::new(&mut io).poll_flush(cx));
    let Ok(Ok(())) = timeout(time_to_send, flushing).await else {
        return;
    };
    let hearing = async {
        let mut discarded = 0;
        while discarded <= LINGER_BYTES_MAX {
            let discarding = poll_fn(|cx| poll_discard(&mut io, &mut turns, cx));
            match timeout(patience.pause, discarding).await {
                Ok(Ok(bytes)) if bytes > 0 => discarded += bytes,
                _ => return,
            }
        }
    };
    // It is over either way.
    let _heard = timeout(patience.time, hearing).await;
}

/// Reads something, when it is the connection's turn, and drops it.
fn poll_discard(
    io: &mut Rewound,
    turns: &mut Turns,
    cx: &mut Context<'_>,
) -> Poll<io::Result<usize>> {
    // What is pending of it goes on with the reading below.
    let _ended = Pin::new(&mut *io).poll_shutdown(cx);
    if !turns.is_turn(cx) {
        return Poll::Pending;
    }
    let mut room = [0; DISCARD_BYTES];
    let mut room = ReadBuf::new(&mut room);
    ready!(Pin::new(io).poll_read(cx, &mut room))?;
    let bytes = room.filled().len();
    turns.spend(bytes);
    Poll::Ready(Ok(bytes))
}
