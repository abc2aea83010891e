use std::time::Duration;

use greenroom::psgi::GatewaySettings;

/// Settings of the server that applications have unless their routes say otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Defaults {
    /// The most bytes of a request's body. Default: 2 MiB.
    pub body_bytes_max: u64,
    /// The time in which the requests of an application that is to end may end. Default: 30 s.
    pub drain_deadline: Duration,
}

impl Default for Defaults {
    fn default() -> Self {
        Self {
            body_bytes_max: GatewaySettings::default().body_bytes_max,
            drain_deadline: Duration::from_secs(30),
        }
    }
}
