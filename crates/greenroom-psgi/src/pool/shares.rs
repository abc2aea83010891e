use greenroom_quantiles::micros;
use greenroom_stage::Client;
use greenroom_stage::fair::ShareShown;
use serde::Serialize;

/// The usage of one client by one route of late, and its rejections.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Share {
    /// The client: its address or network, or the key that the gateway's [client
    /// key](crate::Builder::client_key) returns.
    pub client: Client,
    /// A hash of the method and the first two segments of the path, in 16 hexadecimal digits;
    /// zeros for all routes of which no run has ended yet.
    pub route: String,
    /// Its requests that wait.
    pub queue_len: usize,
    /// The time that its runs took in workers, faded by half every 10 s.
    pub used_micros: u64,
    /// Its requests that were rejected, or dropped before they began, as far back as it is
    /// remembered.
    pub rejected: u64,
}

impl Share {
    pub(super) fn of(shown: &ShareShown<Client>, queue_len: usize) -> Self {
        Self {
            client: shown.name,
            route: format!("{:016x}", shown.flow.route),
            queue_len,
            used_micros: micros(shown.used_of_late),
            rejected: shown.rejected,
        }
    }
}
