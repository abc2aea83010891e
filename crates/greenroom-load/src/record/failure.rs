//! Failures of requests, by kind.

use std::fmt;

/// The reason why a request got no response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FailureKind {
    /// No process listens there (`ECONNREFUSED`).
    Refused,
    /// The connection could not be made for another reason: no route, a network that is down.
    Unreachable,
    /// Every local port to this address is in use (`EADDRNOTAVAIL`).
    NoPort,
    /// The limit on open descriptors is reached (`EMFILE`).
    NoDescriptor,
    /// The connection was not established in time.
    ConnectTimeout,
    /// The TLS handshake or a TLS record failed.
    Tls,
    /// The WebSocket's or HTTP/2's opening was rejected.
    Handshake,
    /// The peer reset the connection, or it broke otherwise.
    Reset,
    /// The peer closed the connection before the response was whole.
    ClosedEarly,
    /// The bytes received are no response of the protocol.
    Malformed,
    /// No whole response within the time-out.
    Timeout,
    /// Open loop: not sent before the schedule's end, because no connection was free or this
    /// program was too slow.
    NeverSent,
}

impl FailureKind {
    /// All kinds, in the order in which reports list them.
    pub const ALL: [Self; 12] = [
        Self::Refused,
        Self::Unreachable,
        Self::NoPort,
        Self::NoDescriptor,
        Self::ConnectTimeout,
        Self::Tls,
        Self::Handshake,
        Self::Reset,
        Self::ClosedEarly,
        Self::Malformed,
        Self::Timeout,
        Self::NeverSent,
    ];

    /// Returns true if a request of this failure had waited for so long at least: its latency.
    #[must_use]
    pub fn has_latency(self) -> bool {
        matches!(self, Self::Timeout | Self::ConnectTimeout | Self::NeverSent)
    }

    /// Returns a word for tables and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Unreachable => "unreachable",
            Self::NoPort => "no-port",
            Self::NoDescriptor => "no-descriptor",
            Self::ConnectTimeout => "connect-timeout",
            Self::Tls => "tls",
            Self::Handshake => "handshake",
            Self::Reset => "reset",
            Self::ClosedEarly => "closed-early",
            Self::Malformed => "malformed",
            Self::Timeout => "timeout",
            Self::NeverSent => "never-sent",
        }
    }

    /// Explains the failure, with a remedy where there is one.
    #[must_use]
    pub fn explanation(self) -> &'static str {
        match self {
            Self::Refused => "nobody accepts connections there; is the server running?",
            Self::Unreachable => "the server could not be reached",
            Self::NoPort => {
                "every local port to this server is in use: keep connections alive (-k), or add \
                source addresses (--source 127.0.0.2)"
            }
            Self::NoDescriptor => {
                "no descriptors are left: raise the limit (ulimit -n), or bound the connections \
                (-c)"
            }
            Self::ConnectTimeout => "the connection was not established in time (-s)",
            Self::Tls => "TLS failed; --insecure accepts any certificate, --ca trusts one more",
            Self::Handshake => "the server speaks another protocol, or refused to open it",
            Self::Reset => "the server reset the connection",
            Self::ClosedEarly => "the server closed the connection before its response was whole",
            Self::Malformed => "what came back is no response of this protocol",
            Self::Timeout => "no whole response came in time (-s)",
            Self::NeverSent => {
                "their time came, but until the schedule's end no connection was free: allow more \
                (-c), or ask for less"
            }
        }
    }

    /// Returns true if the connection was never made.
    #[must_use]
    pub fn is_connect(self) -> bool {
        matches!(
            self,
            Self::Refused
                | Self::Unreachable
                | Self::NoPort
                | Self::NoDescriptor
                | Self::ConnectTimeout
        )
    }

    fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// Failures counted by kind, each with the detail of the first one.
#[derive(Clone, Debug, Default)]
pub struct Failures {
    counts: [u64; FailureKind::ALL.len()],
    first: [Option<String>; FailureKind::ALL.len()],
}

impl Failures {
    /// Counts a failure; `detail` is called for the first of its kind only.
    pub fn record(&mut self, kind: FailureKind, detail: impl FnOnce() -> String) {
        self.counts[kind.index()] += 1;
        self.first[kind.index()].get_or_insert_with(detail);
    }

    /// Adds the failures of another.
    pub fn add(&mut self, other: &Self) {
        for index in 0..self.counts.len() {
            self.counts[index] += other.counts[index];
            if self.first[index].is_none() {
                self.first[index].clone_from(&other.first[index]);
            }
        }
    }

    /// Returns the number of failures of one kind.
    #[must_use]
    pub fn count(&self, kind: FailureKind) -> u64 {
        self.counts[kind.index()]
    }

    /// Returns the detail of the first failure of a kind.
    #[must_use]
    pub fn detail(&self, kind: FailureKind) -> Option<&str> {
        self.first[kind.index()].as_deref()
    }

    /// Returns the number of all failures.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Iterates over the kinds that occurred, with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (FailureKind, u64)> + '_ {
        FailureKind::ALL
            .into_iter()
            .map(|kind| (kind, self.count(kind)))
            .filter(|(_, count)| *count > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_stand_in_their_order() {
        for (index, kind) in FailureKind::ALL.into_iter().enumerate() {
            assert_eq!(kind.index(), index);
        }
    }

    #[test]
    fn the_first_detail_is_kept() {
        let mut failures = Failures::default();
        failures.record(FailureKind::Reset, || "one".into());
        failures.record(FailureKind::Reset, || "two".into());
        let mut sum = Failures::default();
        sum.add(&failures);
        assert_eq!(sum.count(FailureKind::Reset), 2);
        assert_eq!(sum.detail(FailureKind::Reset), Some("one"));
        assert_eq!(sum.iter().collect::<Vec<_>>(), [(FailureKind::Reset, 2)]);
    }
}
