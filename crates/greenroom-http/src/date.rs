use std::io::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use httpdate::HttpDate;

/// 31 December 9999, 23:59:59.
const LAST_SECOND: u64 = 253_402_300_799;
const NAME: &str = "Date: ";
const LAST_LINES_BYTES: usize =
    NAME.len() + "Sun, 06 Nov 1994 08:49:37 GMT".len() + "\r\n\r\n".len();

/// The `Date` field, formatted once a second and copied into every response (RFC 9110, 6.6.1).
#[derive(Clone, Debug)]
pub struct DateCache {
    second: u64,
    /// The whole line of a head, with the empty one that ends the head behind it.
    last_lines: [u8; LAST_LINES_BYTES],
}

impl DateCache {
    /// Creates a cache of the date at `now`.
    #[must_use]
    pub fn new(now: SystemTime) -> Self {
        let second = second_of(now);
        let shown = HttpDate::from(UNIX_EPOCH + Duration::from_secs(second));
        let mut last_lines = [0; LAST_LINES_BYTES];
        // Of a length of its own: the year has four digits up to `LAST_SECOND`.
        let written = write!(&mut last_lines[..], "{NAME}{shown}\r\n\r\n");
        debug_assert!(written.is_ok() && last_lines.ends_with(b"GMT\r\n\r\n"));
        Self { second, last_lines }
    }

    /// Formats `now` if its second differs from the cached one.
    pub fn refresh(&mut self, now: SystemTime) {
        if second_of(now) != self.second {
            *self = Self::new(now);
        }
    }

    /// Returns the value, such as `Sun, 06 Nov 1994 08:49:37 GMT`: 29 bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.last_lines[NAME.len()..LAST_LINES_BYTES - b"\r\n\r\n".len()]
    }

    /// Returns the field as the last of a head, with the empty line behind it.
    pub(crate) fn last_lines(&self) -> &[u8] {
        &self.last_lines
    }
}

/// Returns the seconds since 1970. A clock before 1970 or after 9999 counts as there: the format
/// has no such years.
fn second_of(now: SystemTime) -> u64 {
    now.duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
        .min(LAST_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc9110_6_6_1_date_is_an_imf_fixdate_and_changes_with_the_second() {
        let start = UNIX_EPOCH + Duration::from_secs(784_111_777);
        let mut date = DateCache::new(start);
        assert_eq!(date.as_bytes(), b"Sun, 06 Nov 1994 08:49:37 GMT");
        date.refresh(start + Duration::from_millis(999));
        assert_eq!(date.as_bytes(), b"Sun, 06 Nov 1994 08:49:37 GMT");
        date.refresh(start + Duration::from_secs(1));
        assert_eq!(date.as_bytes(), b"Sun, 06 Nov 1994 08:49:38 GMT");
    }

    #[test]
    fn rfc9110_5_6_7_a_clock_that_is_far_off_is_shown_at_the_edge() {
        let early = DateCache::new(UNIX_EPOCH - Duration::from_secs(1));
        assert_eq!(early.as_bytes(), b"Thu, 01 Jan 1970 00:00:00 GMT");
        let late = DateCache::new(UNIX_EPOCH + Duration::from_secs(LAST_SECOND + 1));
        assert_eq!(late.as_bytes(), b"Fri, 31 Dec 9999 23:59:59 GMT");
    }
}
