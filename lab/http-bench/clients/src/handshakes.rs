//! The outcomes of connections with one request each.

use serde::{Deserialize, Serialize};

/// Counts of one run.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Handshakes {
    /// Responses on connections with a full handshake.
    pub full: u64,
    /// Responses on connections that resumed a session.
    pub resumed: u64,
    /// Connections without a response.
    pub failed: u64,
    /// The reason of the first of them.
    pub first_failure: Option<String>,
    /// The version, cipher suite and key exchange of the last one.
    pub agreed: Option<String>,
}

impl Handshakes {
    /// Returns the responses on any connection.
    #[must_use]
    pub fn answered(&self) -> u64 {
        self.full + self.resumed
    }
}
