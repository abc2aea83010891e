//! The limits of all that is waited for.

use std::time::Duration;

/// Limits of requests to the authority, of orders and of retries.
///
/// ```
/// use std::time::Duration;
///
/// let limits = greenroom_acme::Limits {
///     order_timeout: Duration::from_secs(600),
///     ..greenroom_acme::Limits::default()
/// };
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Time in which the authority must have responded to a request as a whole, the connection
    /// included. Default 30 s, at least 1 ms. Beyond it the attempt has failed.
    pub request_timeout: Duration,
    /// Time that an order may take, from the first request to the certificate, and a question for
    /// the time of a renewal. Default 5 min, at least 1 ms. Beyond it the attempt has failed; a
    /// renewal is then at two thirds of the life.
    pub order_timeout: Duration,
    /// Wait after a failed attempt: once to twice this time, by chance. Default 4 min, at least
    /// 1 ms.
    ///
    /// It doubles with each further failure, up to `retry_max`: by default the attempts come after
    /// 4 to 8 min, then 8 to 16, 16 to 32, 32 to 64, 64 to 128, 128 to 256, 256 to 512, and 6 to
    /// 12 h from then on. The first attempt may use both kinds of challenges, each further one
    /// uses one: so there are at most 5 failed validations of a name in the first hour, which is
    /// what Let's Encrypt allows ([`FAILED_ORDERS_MAX`](crate::FAILED_ORDERS_MAX)). A process that
    /// starts anew begins with the first attempt again, and waits before it if that would be more.
    /// A `Retry-After` of the authority makes the wait longer, up to a day.
    pub retry_min: Duration,
    /// Wait before its chance part is added. Default 6 h, at least `retry_min`.
    pub retry_max: Duration,
    /// Time between a certificate and the order of its successor, whatever the authority
    /// suggests. Default 1 h; half of a certificate's life if that is shorter. Keeps an authority
    /// that always says "renew now" from getting an endless row of orders.
    pub renewal_interval_min: Duration,
    /// Orders and questions to the authority at once. Default 4, at least 1; the others wait.
    pub orders_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            request_timeout: Duration::from_secs(30),
            order_timeout: Duration::from_mins(5),
            retry_min: Duration::from_mins(4),
            retry_max: Duration::from_hours(6),
            renewal_interval_min: Duration::from_hours(1),
            orders_max: 4,
        }
    }
}

impl Limits {
    /// Returns the time within which at most [`FAILED_ORDERS_MAX`](crate::FAILED_ORDERS_MAX)
    /// orders of a group begin that bring no certificate: the least that the first four waits
    /// take together, so that a process which goes on never waits for it.
    pub(crate) fn failed_orders_window(&self) -> Duration {
        let waits = [1, 2, 4, 8].map(|times| self.retry_min.saturating_mul(times));
        let waits = waits.map(|wait| wait.min(self.retry_max));
        waits
            .into_iter()
            .fold(Duration::ZERO, Duration::saturating_add)
    }

    /// Returns what is wrong with the limits.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        let millisecond = Duration::from_millis(1);
        if self.request_timeout < millisecond {
            Some("request_timeout must be at least 1 ms")
        } else if self.order_timeout < millisecond {
            Some("order_timeout must be at least 1 ms")
        } else if self.retry_min < millisecond {
            Some("retry_min must be at least 1 ms")
        } else if self.retry_max < self.retry_min {
            Some("retry_max must be at least retry_min")
        } else if self.orders_max == 0 {
            Some("orders_max must be at least 1")
        } else {
            None
        }
    }
}
