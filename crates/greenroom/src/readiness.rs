//! Readiness for requests, as load balancers ask for it.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// The readiness of a server for requests, as its [admin server](crate::ServerBuilder::admin) tells
/// load balancers at `/ready`. Clones are the same server's.
///
/// A server is not ready before it serves, from its drain on, and while a part of the application
/// says so here. It does not refuse requests meanwhile: whoever asks `/ready` is to send them
/// elsewhere.
///
/// ```
/// use greenroom::{Readiness, Server};
///
/// let readiness = Readiness::default();
/// readiness.set_not_ready("cache", "it is being filled");
/// let server = Server::builder().listen("127.0.0.1:5000").readiness(&readiness);
/// // Later, in a task that has filled it:
/// readiness.set_ready("cache");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Readiness(Arc<Mutex<Waiting>>);

/// The parts that are not ready, with their reasons.
type Waiting = BTreeMap<&'static str, String>;

impl Readiness {
    /// Notes that a part of the application is not ready, in place of an earlier reason of the same
    /// part. The reason is shown to whoever reaches the admin address.
    pub fn set_not_ready(&self, part: &'static str, reason: impl Into<String>) {
        self.0.lock().insert(part, reason.into());
    }

    /// Notes that a part of the application is ready.
    pub fn set_ready(&self, part: &'static str) {
        self.0.lock().remove(part);
    }

    /// Returns the reasons why the server is not ready; none if it is.
    pub(crate) fn reasons(&self, has_begun: bool, is_draining: bool) -> Vec<String> {
        let own = match (is_draining, has_begun) {
            (true, _) => Some("draining: what is under way is finished, then the server ends"),
            (false, false) => Some("starting: no application is served yet"),
            (false, true) => None,
        };
        let waiting = self.0.lock();
        let waiting = waiting
            .iter()
            .map(|(part, reason)| format!("{part}: {reason}"));
        own.map(str::to_owned).into_iter().chain(waiting).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_ready_when_it_serves_and_no_part_waits() {
        let readiness = Readiness::default();
        assert!(readiness.reasons(false, false)[0].starts_with("starting"));
        readiness.set_not_ready("cache", "it is being filled");
        assert_eq!(
            readiness.reasons(true, false),
            ["cache: it is being filled"]
        );
        readiness.set_not_ready("cache", "half of it is there");
        assert_eq!(
            readiness.reasons(true, false),
            ["cache: half of it is there"]
        );
        readiness.set_ready("cache");
        assert_eq!(readiness.reasons(true, false), [""; 0]);
        assert!(readiness.reasons(true, true)[0].starts_with("draining"));
    }
}
