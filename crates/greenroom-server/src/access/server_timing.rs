//! `Server-Timing` (W3C, Server Timing): where a request's time went until its response began.

use std::fmt::Write;
use std::time::Duration;

use greenroom_timing::Times;
use http::HeaderValue;
use http::header::{HeaderMap, HeaderName};

use crate::proxies::Sender;

const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");
const X_SERVER_TIMING: HeaderName = HeaderName::from_static("x-server-timing");

/// The requests whose responses have the field `Server-Timing`. It tells much of a server, so by
/// default none have it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServerTiming {
    /// None.
    #[default]
    Off,
    /// Those that a trusted proxy sent with a field `X-Server-Timing`.
    Trusted,
    /// All.
    All,
}

impl ServerTiming {
    pub(super) fn is_for(self, sender: Sender, headers: &HeaderMap) -> bool {
        match self {
            Self::Off => false,
            Self::Trusted => {
                sender == Sender::TrustedProxy && headers.contains_key(X_SERVER_TIMING)
            }
            Self::All => true,
        }
    }
}

pub(super) fn tell(times: &Times, headers: &mut HeaderMap) {
    // Beside what the application says.
    if let Ok(value) = HeaderValue::try_from(text(times)) {
        headers.append(SERVER_TIMING, value);
    }
}

/// Returns the times in milliseconds, without those that are zero.
fn text(times: &Times) -> String {
    let mut text = String::new();
    for (name, time) in [
        ("head", times.head),
        ("body", times.body),
        ("queue", times.queue),
        ("poll", times.poll),
        ("worker-queue", times.worker_queue),
        ("worker", times.worker),
        ("waiting", times.waiting()),
        ("total", times.total),
    ] {
        if time > Duration::ZERO {
            let separator = if text.is_empty() { "" } else { ", " };
            // Writing to a string cannot fail.
            let millis = time.as_secs_f64() * 1e3;
            let _written = write!(text, "{separator}{name};dur={millis:.3}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_in_milliseconds_and_what_is_zero_is_left_out() {
        let times = Times {
            poll: Duration::from_micros(1_500),
            response: Some(Duration::from_millis(4)),
            total: Duration::from_millis(4),
            ..Times::default()
        };
        let expected = "poll;dur=1.500, waiting;dur=2.500, total;dur=4.000";
        assert_eq!(text(&times), expected);
    }

    #[test]
    fn a_client_cannot_ask_for_it() {
        let mut asked = HeaderMap::new();
        asked.insert(X_SERVER_TIMING, HeaderValue::from_static("1"));
        let none = HeaderMap::new();
        for (setting, sender, headers, expected) in [
            (ServerTiming::Off, Sender::TrustedProxy, &asked, false),
            (ServerTiming::Trusted, Sender::TrustedProxy, &asked, true),
            (ServerTiming::Trusted, Sender::TrustedProxy, &none, false),
            (ServerTiming::Trusted, Sender::Client, &asked, false),
            (ServerTiming::All, Sender::Client, &none, true),
        ] {
            assert_eq!(setting.is_for(sender, headers), expected, "{setting:?}");
        }
    }
}
