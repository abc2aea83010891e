//! The text of the second that it is, for lines of a log.

use std::cell::RefCell;
use std::fmt::{self, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;

thread_local! {
    /// The text of this thread's last line, with its second since 1970 and its format.
    static LAST: RefCell<(u64, &'static str, String)> =
        const { RefCell::new((u64::MAX, "", String::new())) };
}

/// Returns the time since 1970. A clock that is before that does not know the time.
pub(super) fn now() -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default()
}

/// Writes a time to the second, in a format of `strftime`. Formatted once a second by each thread:
/// with each short request there is a line.
pub(super) fn write(now: Duration, format: &'static str, out: &mut impl Write) -> fmt::Result {
    let text = |second: u64| {
        let second = i64::try_from(second).ok();
        let second = second.and_then(|second| Timestamp::from_second(second).ok());
        second.unwrap_or_default().strftime(format)
    };
    let second = now.as_secs();
    let written = LAST.try_with(|last| {
        let (of, in_format, written) = &mut *last.borrow_mut();
        if (*of, *in_format) != (second, format) {
            (*of, *in_format) = (second, format);
            written.clear();
            write!(written, "{}", text(second))?;
        }
        out.write_str(written)
    });
    // A thread that ends may have none any more.
    written.unwrap_or_else(|_| write!(out, "{}", text(second)))
}
