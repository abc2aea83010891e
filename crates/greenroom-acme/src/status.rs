//! The state of all certificates, for pages and programs.

use std::time::SystemTime;

use serde::Serialize;

use crate::certificate::Certificate;

/// The state of all certificates. Times serialize as in RFC 3339.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Status {
    /// The authority's directory.
    pub directory_url: String,
    /// The groups of names, in the order in which they were given.
    pub groups: Vec<GroupStatus>,
}

/// The state of one certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GroupStatus {
    /// The names that it is ordered for.
    pub names: Vec<String>,
    /// The certificate that is served, if there is one. It stays while the authority fails, also
    /// after it has ended.
    pub certificate: Option<CertificateStatus>,
    /// The state of the order for the next one.
    pub state: State,
}

/// A certificate that is served.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CertificateStatus {
    /// The names in it. They can differ from the group's until the next order is complete.
    pub names: Vec<String>,
    /// Its serial number in hexadecimal digits.
    pub serial: String,
    /// Its first moment.
    #[serde(with = "humantime_serde")]
    pub not_before: SystemTime,
    /// Its last moment.
    #[serde(with = "humantime_serde")]
    pub not_after: SystemTime,
    /// False if it could not be written to disk, and would be ordered anew after a restart. It is
    /// tried again at least every [`SAVE_AGAIN_MAX`](crate::SAVE_AGAIN_MAX).
    pub is_saved: bool,
}

/// The state of a certificate's order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum State {
    /// An order was not looked into yet.
    Starting,
    /// An order is under way, or waits for others.
    Ordering,
    /// The certificate is valid, and waits for its renewal.
    Waiting {
        /// The time of the renewal. The authority can bring it forward.
        #[serde(with = "humantime_serde")]
        renew_at: SystemTime,
    },
    /// The last attempt has failed.
    Failed {
        /// The reason, with what the authority says about it.
        reason: String,
        /// A way to help it, if one is known.
        advice: Option<String>,
        /// Attempts that have failed in a row; before the first one of a process that has to wait
        /// for it, the orders that have failed before.
        attempts: u32,
        /// The time of the next attempt.
        #[serde(with = "humantime_serde")]
        next_attempt_at: SystemTime,
    },
}

impl Status {
    /// Returns the group of these names, if it is still looked after.
    pub(crate) fn group(&mut self, names: &[String]) -> Option<&mut GroupStatus> {
        self.groups.iter_mut().find(|group| group.names == names)
    }
}

impl GroupStatus {
    pub(crate) fn new(names: Vec<String>, certificate: Option<&Certificate>) -> Self {
        Self {
            names,
            certificate: certificate.map(|certificate| CertificateStatus::new(certificate, true)),
            state: State::Starting,
        }
    }
}

impl CertificateStatus {
    pub(crate) fn new(certificate: &Certificate, is_saved: bool) -> Self {
        Self {
            names: certificate.names.clone(),
            serial: certificate.serial.clone(),
            not_before: certificate.not_before,
            not_after: certificate.not_after,
            is_saved,
        }
    }
}
