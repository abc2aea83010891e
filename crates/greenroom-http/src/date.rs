use std::time::{SystemTime, UNIX_EPOCH};

use httpdate::HttpDate;

/// The `Date` field's value, formatted once a second and copied into every answer
/// (RFC 9110, 6.6.1).
#[derive(Clone, Debug)]
pub struct DateCache {
    second: u64,
    text: Vec<u8>,
}

impl DateCache {
    /// The date at `now`.
    #[must_use]
    pub fn new(now: SystemTime) -> Self {
        Self {
            second: second_of(now),
            text: HttpDate::from(now).to_string().into_bytes(),
        }
    }

    /// Formats `now` anew if its second is another one than the cached.
    pub fn refresh(&mut self, now: SystemTime) {
        if second_of(now) != self.second {
            *self = Self::new(now);
        }
    }

    /// The value, such as `Sun, 06 Nov 1994 08:49:37 GMT`: 29 bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.text
    }
}

fn second_of(now: SystemTime) -> u64 {
    now.duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

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
}
