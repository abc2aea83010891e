use std::cell::{Cell, RefCell};

use greenroom_http::{NotInformational, informational};
use http::{HeaderMap, StatusCode};

/// Bytes that one poll of a handler may send ahead of its answer, one answer more or less: 64 KiB.
const UNSENT_BYTES_MAX: usize = 64 * 1_024;

/// Why an informational answer was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotPossible {
    /// The status is not informational, or not the application's to send.
    #[error("{0} is no informational status that an application sends: allowed are 102 to 199")]
    Status(StatusCode),
    /// No request's handler is being polled on this thread that could send it.
    #[error(
        "informational answers are sent from within the handler of an HTTP/1.1 request, on its loop, before its answer"
    )]
    Now,
    /// The handler has sent as many in one poll as may wait: 64 KiB.
    #[error("more than {UNSENT_BYTES_MAX} bytes of informational answers at once")]
    TooMuch,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Door {
    Shut,
    Open,
    /// Open, and something is in [`UNSENT`].
    Used,
}

thread_local! {
    static DOOR: Cell<Door> = const { Cell::new(Door::Shut) };
    static UNSENT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Sends an informational answer, such as `103 Early Hints` (RFC 9110, 15.2; RFC 8297), to the client
/// whose request the calling handler is about. It goes out before the answer proper, and at once if
/// the handler then waits. Fields that frame content or concern the connection are left out.
///
/// To be called while the handler's future is polled by its connection: by code that runs on the
/// loop, and not from a stage, another thread or a spawned task.
///
/// # Errors
///
/// [`NotPossible::Status`] unless `status` is from 102 to 199. [`NotPossible::Now`] outside of such a
/// poll, for a client of HTTP/1.0 (which knows no such answers), over HTTP/2, for a request that asks
/// for an upgrade, and once the answer has begun. [`NotPossible::TooMuch`] if the handler has sent
/// 64 KiB of them without waiting in between.
pub fn send_informational(status: StatusCode, headers: &HeaderMap) -> Result<(), NotPossible> {
    if DOOR.get() == Door::Shut {
        return Err(NotPossible::Now);
    }
    UNSENT.with_borrow_mut(|unsent| {
        if unsent.len() >= UNSENT_BYTES_MAX {
            return Err(NotPossible::TooMuch);
        }
        informational(status, headers, unsent)
            .map_err(|NotInformational(status)| NotPossible::Status(status))?;
        DOOR.set(Door::Used);
        Ok(())
    })
}

/// Calls `poll`, which must not unwind, and appends to `out` what it sent. Unless anything may be
/// sent, whoever tries is told so.
pub(crate) fn during<T>(may_send: bool, out: &mut Vec<u8>, poll: impl FnOnce() -> T) -> T {
    if !may_send {
        return poll();
    }
    DOOR.set(Door::Open);
    let polled = poll();
    // A handler that sends none, as nearly all do, costs no look at the buffer.
    if DOOR.replace(Door::Shut) == Door::Used {
        UNSENT.with_borrow_mut(|unsent| out.append(unsent));
    }
    polled
}
