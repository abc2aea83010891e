//! Certificates from a real authority, Pebble, which every test starts for itself.

mod ca;
mod clock;
mod log;
mod obtain;
mod ports;
mod renew;
mod site;
mod store;
mod trouble;

use std::path::Path;
use std::time::Duration;

use greenroom_acme::{Acme, AcmeBuilder, CertificateStatus, Limits, State, Status};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use ca::Ca;
use clock::ManualClock;

/// A time far longer than anything here takes: a test that waits so long has failed.
const DEADLINE: Duration = Duration::from_mins(4);

/// Attempts after which a test has failed. On a busy machine some may be too slow.
const ATTEMPTS_MAX: u32 = 30;

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, future)
        .await
        .expect("in time")
}

/// Returns a builder for certificates of this authority, without names.
fn builder(ca: &Ca, storage: &Path) -> AcmeBuilder {
    let limits = Limits {
        request_timeout: DEADLINE,
        order_timeout: DEADLINE,
        ..Limits::default()
    };
    Acme::builder(storage)
        .agree_to_terms_of_service()
        .directory_url(ca.directory_url())
        .roots(ca.https_root())
        .limits(limits)
}

/// The certificates' task, which ends with this.
struct Running {
    status: watch::Receiver<Status>,
    task: JoinHandle<std::convert::Infallible>,
}

impl Running {
    fn start(acme: Acme) -> Self {
        Self {
            status: acme.status(),
            task: tokio::spawn(acme.run()),
        }
    }

    /// Waits for the first group's certificate.
    async fn certificate(&mut self) -> CertificateStatus {
        self.until(|status| status.groups[0].certificate.is_some())
            .await
            .groups[0]
            .certificate
            .clone()
            .expect("it is there")
    }

    /// Waits until the first group's last attempt has failed. Returns its reason and its advice.
    async fn failure(&mut self) -> (String, Option<String>) {
        let status = self
            .until(|status| is_failed(&status.groups[0].state))
            .await;
        match &status.groups[0].state {
            State::Failed { reason, advice, .. } => (reason.clone(), advice.clone()),
            state => panic!("not failed: {state:?}"),
        }
    }

    /// Waits until the first group waits for its renewal by another certificate.
    async fn renewed(&mut self, old: &CertificateStatus) -> CertificateStatus {
        let is_new = |certificate: &CertificateStatus| certificate.serial != old.serial;
        self.until(|status| status.groups[0].certificate.as_ref().is_some_and(is_new))
            .await;
        self.certificate().await
    }

    /// Lets time pass until the first group has a certificate, over some failures if need be.
    async fn certificate_at_last(&mut self, clock: &ManualClock) -> CertificateStatus {
        let is_over = |state: &State| is_failed(state) || matches!(state, State::Waiting { .. });
        let mut state = State::Starting;
        for _ in 0..ATTEMPTS_MAX {
            let status = self.until(|status| is_over(&status.groups[0].state)).await;
            state = status.groups[0].state.clone();
            let State::Failed {
                next_attempt_at, ..
            } = state
            else {
                return self.certificate().await;
            };
            clock.set(next_attempt_at);
            self.until(|status| !is_failed_until(status, next_attempt_at))
                .await;
        }
        panic!("still {state:?}");
    }

    async fn until(&mut self, mut holds: impl FnMut(&Status) -> bool) -> Status {
        let found = within(self.status.wait_for(|status| holds(status))).await;
        found.expect("the task runs").clone()
    }

    /// Ends the task, and waits until the directory is free.
    async fn stop(mut self) {
        self.task.abort();
        assert!((&mut self.task).await.is_err(), "it never ends by itself");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn is_failed(state: &State) -> bool {
    matches!(state, State::Failed { .. })
}

fn is_failed_until(status: &Status, next: std::time::SystemTime) -> bool {
    let state = &status.groups[0].state;
    matches!(state, State::Failed { next_attempt_at, .. } if *next_attempt_at == next)
}
