use serde::Serialize;

/// A snapshot of a proxy. Counters count from its start.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ProxyStatus {
    /// The upstreams, in the order of the settings.
    pub upstreams: Vec<UpstreamStatus>,
    /// Requests that no upstream got, because each had as many under way as it may: 503.
    pub refused: u64,
    /// Requests that came round to this proxy again: 508.
    pub loops: u64,
}

/// A snapshot of an upstream.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct UpstreamStatus {
    /// Its address, as in the settings.
    pub address: String,
    /// Its state.
    pub state: UpstreamState,
    /// Requests that it has at present, tunnels included.
    pub in_flight: u32,
    /// Times that it was given a request, retries included.
    pub requests: u64,
    /// Of those, the ones that were sent to it after another try had failed.
    pub retries: u64,
    /// Requests that failed at it, by the reason.
    pub failures: UpstreamFailures,
    /// Failures since its last response.
    pub failures_in_a_row: u32,
    /// Times that it began to rest.
    pub rests: u64,
}

/// Requests that failed at an upstream, by the reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct UpstreamFailures {
    /// It could not be connected to, or its name not be resolved.
    pub connect: u64,
    /// It could not be connected to in time.
    pub connect_timeout: u64,
    /// This machine had no file, memory or port left for a connection to it: 503. They make no
    /// upstream rest.
    pub local: u64,
    /// It did not respond in time.
    pub response_head_timeout: u64,
    /// It closed the connection before the response's head, or sent none that HTTP allows.
    pub response_head: u64,
    /// It closed the connection within the response's body, broke its framing or took too long.
    pub response_body: u64,
    /// It sent one of the settings' `failure_statuses`.
    pub status: u64,
}

impl UpstreamFailures {
    /// Returns the sum of all.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.connect
            + self.connect_timeout
            + self.local
            + self.response_head_timeout
            + self.response_head
            + self.response_body
            + self.status
    }
}

/// The state of an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum UpstreamState {
    /// It gets requests.
    Healthy,
    /// It has failed too often, and gets requests again after a rest; meanwhile only if all rest.
    Resting,
}
