use std::hash::Hash;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use governor::clock::{Clock, DefaultClock};
use governor::state::keyed::DashMapStateStore;
use governor::{Quota, RateLimiter};
use parking_lot::Mutex;

use super::Client;
use super::failed_log_ins::FailedLogIns;
use crate::config::LimitSettings;
use crate::model::Id;
use crate::{App, Failure};

/// The divisor that gives the burst from a minute's requests.
const BURST_SHARE: u32 = 5;
/// The failed log-ins allowed for one name, from all clients together, as a multiple of one
/// client's.
///
/// It is larger than one because an attacker whose log-ins fail locks the user out too, for a
/// minute.
const NAME_SHARE: u32 = 10;
/// The interval at which idle clients are forgotten: those whose full burst is available again. So
/// a client is remembered for at most a minute longer than that.
const FORGET_EVERY: Duration = Duration::from_secs(10);

/// The rate limits of each client, counted in this process; cheap to clone.
#[derive(Clone, Debug)]
pub struct Limits(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    requests: Limit<IpAddr>,
    log_ins_from: Limit<IpAddr>,
    failed_log_ins: FailedLogIns,
    mails: Limit<IpAddr>,
    sign_ups: Limit<IpAddr>,
    changes: Limit<Id>,
    uploads: Limit<Id>,
}

impl Limits {
    /// Creates the limits of these settings, with nothing counted yet.
    #[must_use]
    pub fn new(settings: &LimitSettings) -> Self {
        Self(Arc::new(Inner {
            requests: Limit::new(settings.requests),
            log_ins_from: Limit::new(settings.log_ins),
            failed_log_ins: FailedLogIns::new(settings.log_ins.saturating_mul(NAME_SHARE)),
            mails: Limit::new(settings.mails),
            sign_ups: Limit::new(settings.sign_ups),
            changes: Limit::new(settings.changes),
            uploads: Limit::new(settings.uploads),
        }))
    }

    /// Counts a request of any kind.
    ///
    /// # Errors
    /// [`Failure::TooMany`] if the limit is exceeded; so do all methods of this type.
    pub fn request(&self, client: Client) -> Result<(), Failure> {
        self.0.requests.count(&client.0)
    }

    /// Counts a try to log in for the client, and rejects it if too many have
    /// [failed](Self::failed_log_in) for the name, which may be any text.
    ///
    /// # Errors
    /// See [`request`](Self::request).
    pub fn log_in(&self, client: Client, name: &str) -> Result<(), Failure> {
        self.0.log_ins_from.count(&client.0)?;
        self.0.failed_log_ins.check(name, Instant::now())
    }

    /// Counts a failed log-in for the name.
    pub fn failed_log_in(&self, name: &str) {
        self.0.failed_log_ins.count(name, Instant::now());
    }

    /// Counts a mail that the client asks for.
    ///
    /// # Errors
    /// See [`request`](Self::request).
    pub fn mail(&self, client: Client) -> Result<(), Failure> {
        self.0.mails.count(&client.0)
    }

    /// Counts a sign-up.
    ///
    /// # Errors
    /// See [`request`](Self::request).
    pub fn sign_up(&self, client: Client) -> Result<(), Failure> {
        self.0.sign_ups.count(&client.0)
    }

    /// Counts a change. The extractors of this module call it.
    ///
    /// # Errors
    /// See [`request`](Self::request).
    pub fn change(&self, user: Id) -> Result<(), Failure> {
        self.0.changes.count(&user)
    }

    /// Counts a request that uploads pictures.
    ///
    /// # Errors
    /// See [`request`](Self::request).
    pub fn upload(&self, user: Id) -> Result<(), Failure> {
        self.0.uploads.count(&user)
    }
}

/// Middleware that counts each request for its client.
///
/// # Errors
/// See [`Limits::request`].
pub async fn limit_requests(
    State(app): State<App>,
    client: Client,
    request: Request,
    next: Next,
) -> Result<Response, Failure> {
    app.limits.request(client)?;
    Ok(next.run(request).await)
}

type Keyed<K> = RateLimiter<K, DashMapStateStore<K>, DefaultClock>;

#[derive(Debug)]
struct Limit<K: Clone + Eq + Hash> {
    /// `None` lets everything pass.
    limiter: Option<Keyed<K>>,
    forgot_at: Mutex<Instant>,
}

impl<K: Clone + Eq + Hash> Limit<K> {
    fn new(per_minute: u32) -> Self {
        let limiter = NonZeroU32::new(per_minute).map(|per_minute| {
            let burst = NonZeroU32::new(per_minute.get() / BURST_SHARE);
            let quota = Quota::per_minute(per_minute);
            RateLimiter::dashmap(quota.allow_burst(burst.unwrap_or(NonZeroU32::MIN)))
        });
        Self {
            limiter,
            forgot_at: Mutex::new(Instant::now()),
        }
    }

    fn count(&self, key: &K) -> Result<(), Failure> {
        let Some(limiter) = &self.limiter else {
            return Ok(());
        };
        if self.is_time_to_forget() {
            limiter.retain_recent();
            limiter.shrink_to_fit();
        }
        let now = limiter.clock().now();
        limiter.check_key(key).map_err(|until| Failure::TooMany {
            retry_after: until.wait_time_from(now),
        })
    }

    fn is_time_to_forget(&self) -> bool {
        let mut forgot_at = self.forgot_at.lock();
        let is_time = forgot_at.elapsed() >= FORGET_EVERY;
        if is_time {
            *forgot_at = Instant::now();
        }
        is_time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rejected_for(outcome: Result<(), Failure>) -> Option<Duration> {
        match outcome {
            Ok(()) => None,
            Err(Failure::TooMany { retry_after }) => Some(retry_after),
            Err(other) => panic!("not what a limit says: {other}"),
        }
    }

    #[test]
    fn a_fifth_of_a_minute_at_once_and_then_one_by_one() {
        let limit = Limit::new(20);
        for _ in 0..4 {
            assert_eq!(rejected_for(limit.count(&"ada")), None);
        }
        let wait = rejected_for(limit.count(&"ada")).expect("the fifth is too many");
        assert!(wait <= Duration::from_secs(3), "{wait:?}");
        assert_eq!(rejected_for(limit.count(&"grace")), None);
    }

    #[test]
    fn a_small_limit_lets_one_pass() {
        let limit = Limit::new(1);
        assert_eq!(rejected_for(limit.count(&1)), None);
        assert!(rejected_for(limit.count(&1)).is_some());
    }

    #[test]
    fn nought_is_no_limit() {
        let limit = Limit::new(0);
        for _ in 0..1_000 {
            assert_eq!(rejected_for(limit.count(&1)), None);
        }
    }

    #[test]
    fn a_name_is_guarded_against_many_clients() {
        let limits = Limits::new(&LimitSettings {
            log_ins: 5,
            ..LimitSettings::default()
        });
        let client = |last| Client(IpAddr::from([192, 0, 2, last]));
        assert_eq!(rejected_for(limits.log_in(client(1), "ada")), None);
        assert!(
            rejected_for(limits.log_in(client(1), "grace")).is_some(),
            "by the client"
        );
        for _ in 0..5 * NAME_SHARE - 1 {
            limits.failed_log_in("ada");
        }
        assert_eq!(rejected_for(limits.log_in(client(2), "ada")), None);
        limits.failed_log_in("ada");
        assert!(
            rejected_for(limits.log_in(client(3), "ada")).is_some(),
            "by the name"
        );
        assert_eq!(rejected_for(limits.log_in(client(4), "linus")), None);
    }
}
