//! Upstreams: their load, their health, their connections.

mod balance;
mod clients;
mod connect;
mod failure;
mod meters;

use std::sync::Arc;

use greenroom_server::rustls::ClientConfig;
use http::uri::{Authority, Scheme};
use parking_lot::Mutex;
use tokio::time::Instant;

use balance::{Balance, Choice};
use clients::Clients;
pub(crate) use clients::HyperClient;
pub(crate) use connect::ConnectionUse;
pub(crate) use failure::{Failure, chain};

use crate::settings::Settings;
use crate::status::{UpstreamFailures, UpstreamState, UpstreamStatus};
use crate::throttle::Throttle;

/// The upstreams of a proxy.
pub(crate) struct Upstreams {
    list: Vec<Upstream>,
    balance: Mutex<Balance>,
}

struct Upstream {
    /// Its address as in the settings.
    name: Arc<str>,
    scheme: Scheme,
    authority: Authority,
    clients: Clients,
    counts: Mutex<Counts>,
    warnings: Throttle,
}

#[derive(Clone, Copy, Default)]
struct Counts {
    requests: u64,
    retries: u64,
    failures: UpstreamFailures,
    rests: u64,
}

/// A request's place at an upstream, until it is dropped.
pub(crate) struct Permit {
    upstreams: Arc<Upstreams>,
    choice: Choice,
    /// A trial whose outcome is still open.
    is_open_trial: bool,
}

impl Upstreams {
    pub(crate) fn new(settings: &Settings, tls: Option<&Arc<ClientConfig>>) -> Self {
        let upstream = |address: &crate::UpstreamAddress| Upstream {
            name: address.to_string().into(),
            scheme: address.scheme(),
            authority: address.authority(),
            clients: Clients::new(address, settings, tls),
            counts: Mutex::default(),
            warnings: Throttle::default(),
        };
        Self {
            list: settings.to.iter().map(upstream).collect(),
            balance: Mutex::new(Balance::new(settings)),
        }
    }

    /// Returns a place at an upstream that is not among `tried`. `None` if all have as many
    /// requests as they may.
    pub(crate) fn acquire(self: &Arc<Self>, tried: &[usize], is_retry: bool) -> Option<Permit> {
        let choice = self.balance.lock().choose(Instant::now(), tried)?;
        let permit = Permit {
            upstreams: Arc::clone(self),
            choice,
            is_open_trial: choice.is_trial,
        };
        let upstream = permit.upstream();
        {
            let mut counts = upstream.counts.lock();
            counts.requests += 1;
            counts.retries += u64::from(is_retry);
        }
        meters::entered(&upstream.name, is_retry);
        Some(permit)
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    pub(crate) fn status(&self) -> Vec<UpstreamStatus> {
        let balance = self.balance.lock();
        let members = balance.members().iter();
        let status = self.list.iter().zip(members).map(|(upstream, member)| {
            let counts = *upstream.counts.lock();
            UpstreamStatus {
                address: upstream.name.to_string(),
                state: if member.is_resting() {
                    UpstreamState::Resting
                } else {
                    UpstreamState::Healthy
                },
                in_flight: member.in_flight,
                requests: counts.requests,
                retries: counts.retries,
                failures: counts.failures,
                failures_in_a_row: member.failures_in_a_row,
                rests: counts.rests,
            }
        });
        status.collect()
    }
}

impl Drop for Upstreams {
    fn drop(&mut self) {
        let members = self.balance.get_mut().members();
        for (upstream, member) in self.list.iter().zip(members) {
            if member.is_resting() {
                meters::rest_ended(&upstream.name);
            }
        }
    }
}

impl Permit {
    fn upstream(&self) -> &Upstream {
        &self.upstreams.list[self.choice.index]
    }

    /// Returns the upstream's number in the settings.
    pub(crate) fn index(&self) -> usize {
        self.choice.index
    }

    /// Returns the upstream's address as in the settings.
    pub(crate) fn name(&self) -> &str {
        &self.upstream().name
    }

    pub(crate) fn scheme(&self) -> &Scheme {
        &self.upstream().scheme
    }

    pub(crate) fn authority(&self) -> &Authority {
        &self.upstream().authority
    }

    /// Returns the client for the runtime of the caller.
    pub(crate) fn client(&self) -> HyperClient {
        self.upstream().clients.current()
    }

    /// Notes that the upstream responds.
    pub(crate) fn responded(&mut self) {
        self.is_open_trial = false;
        let has_recovered = self.upstreams.balance.lock().responded(self.choice.index);
        if has_recovered {
            let upstream = self.upstream();
            meters::rest_ended(&upstream.name);
            tracing::info!(target: "proxy", upstream = &*upstream.name, "it responds again");
        }
    }

    /// Notes that the request failed there.
    pub(crate) fn failed(&mut self, failure: Failure, error: &str) {
        if !failure.is_of_upstream() {
            // A trial is still open, and the next request another one.
            self.note(failure, error);
            return;
        }
        self.is_open_trial = false;
        let mut balance = self.upstreams.balance.lock();
        let was_resting = balance.members()[self.choice.index].is_resting();
        let rest = balance.failed(self.choice, Instant::now());
        drop(balance);
        self.note(failure, error);
        let upstream = self.upstream();
        if failure.is_before_request() {
            upstream.clients.resolve_again();
        }
        let Some(rest) = rest else {
            return;
        };
        upstream.counts.lock().rests += 1;
        if !was_resting {
            meters::rest_began(&upstream.name);
            tracing::warn!(
                target: "proxy",
                upstream = &*upstream.name, ?rest, error,
                "it failed too often in a row, and rests"
            );
        }
    }

    /// Counts and logs a failure that tells nothing of the upstream's health.
    pub(crate) fn note(&self, failure: Failure, error: &str) {
        let upstream = self.upstream();
        *failure.count(&mut upstream.counts.lock().failures) += 1;
        meters::failed(&upstream.name, failure);
        if let Some(count) = upstream.warnings.count() {
            let (reason, advice) = (failure.name(), failure.advice());
            tracing::warn!(
                target: "proxy",
                upstream = &*upstream.name, count, reason, error,
                "requests failed at an upstream: {advice}"
            );
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut balance = self.upstreams.balance.lock();
        balance.leave(self.choice.index);
        if self.is_open_trial {
            balance.end_trial(self.choice.index);
        }
        drop(balance);
        meters::left(&self.upstream().name);
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_this_machine_lacks_makes_no_upstream_rest() {
        let address = "http://127.0.0.1:1".parse().expect("an address");
        let settings = Settings::new([address]);
        let upstreams = Arc::new(Upstreams::new(&settings, None));
        let fail = |failure| {
            let mut permit = upstreams.acquire(&[], false).expect("room");
            permit.failed(failure, "as it should");
            drop(permit);
            let status = upstreams.status().remove(0);
            (status.state, status.rests)
        };
        for _ in 0..10 {
            assert_eq!(fail(Failure::Local), (UpstreamState::Healthy, 0));
        }
        for _ in 1..settings.failures_max {
            assert_eq!(fail(Failure::Connect), (UpstreamState::Healthy, 0));
        }
        assert_eq!(fail(Failure::Connect), (UpstreamState::Resting, 1));
        // A trial that cannot be made leaves it to the next request.
        advance(settings.rest_first).await;
        assert_eq!(fail(Failure::Local), (UpstreamState::Resting, 1));
        assert_eq!(fail(Failure::Connect), (UpstreamState::Resting, 2));
        let failures = upstreams.status().remove(0).failures;
        assert_eq!((failures.local, failures.connect), (11, 4));
        assert_eq!(failures.total(), 15);
    }
}
