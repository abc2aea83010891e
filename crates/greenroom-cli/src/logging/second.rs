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
    LAST.with_borrow_mut(|(second, last, text)| {
        if (*second, *last) != (now.as_secs(), format) {
            (*second, *last) = (now.as_secs(), format);
            text.clear();
            let begin = i64::try_from(*second).ok();
            let begin = begin.and_then(|begin| Timestamp::from_second(begin).ok());
            write!(text, "{}", begin.unwrap_or_default().strftime(format))?;
        }
        out.write_str(text)
    })
}
