//! The life of one certificate: ordered, served, renewed.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use humantime_serde::re::humantime::{format_duration, format_rfc3339_seconds};
use instant_acme::CertificateIdentifier;
use tokio::sync::{Semaphore, watch};
use tracing::{debug, error, info, warn};

use crate::account::{Accounts, in_background};
use crate::certificate::Certificate;
use crate::certificates::Certificates;
use crate::challenges::ChallengeKind;
use crate::clock::{Clock, Deadline};
use crate::failed_orders::FailedOrders;
use crate::failure::Failure;
use crate::limits::Limits;
use crate::order::{Obtained, Orders};
use crate::schedule::{
    ASK_AGAIN_AFTER_FAILURE, ASK_AGAIN_MAX, ASK_AGAIN_MIN, SAVE_AGAIN_MAX, Window, latest, pause,
    two_thirds,
};
use crate::status::{CertificateStatus, State, Status};
use crate::store::Store;

/// The parts that all groups share.
pub(crate) struct Shared {
    pub(crate) accounts: Accounts,
    pub(crate) certificates: Arc<Certificates>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) limits: Limits,
    pub(crate) orders: Orders,
    pub(crate) permits: Semaphore,
    pub(crate) status: watch::Sender<Status>,
    pub(crate) store: Arc<Store>,
    /// Another process may have written since certificates were read.
    pub(crate) is_stale: AtomicBool,
}

impl Shared {
    /// Reads the certificates on disk for a group's names, the one that serves them best last.
    ///
    /// They lie by the first name of the group that they were ordered for: the same names may have
    /// stood in another order then, and names may have come before them since.
    pub(crate) fn on_disk(&self, names: &[String]) -> Vec<Certificate> {
        let found = names.iter().rev().filter_map(|name| self.read(name));
        let mut found: Vec<_> = found.collect();
        found.sort_by_key(|certificate| certificate.rank(names));
        found
    }

    /// Reads a certificate; one that cannot be read is as good as none, but is told of.
    fn read(&self, name: &str) -> Option<Certificate> {
        let text = match self.store.certificate(name) {
            Ok(text) => text?,
            Err(error) => {
                error!(%error, "a certificate cannot be read and is not used");
                return None;
            }
        };
        let parsed = Certificate::from_pem(&text, &self.orders.provider);
        let tell = |error: &_| {
            let path = self.store.certificate_path(name);
            error!(path = %path.display(), %error, "a certificate is damaged and is not used");
        };
        parsed.inspect_err(tell).ok()
    }
}

/// The names of one certificate, and the certificate.
pub(crate) struct Group {
    shared: Arc<Shared>,
    /// In lower case; the first names the files. They name the group in the status.
    names: Vec<String>,
    certificate: Option<Certificate>,
    /// The text of the certificate's file while it could not be written.
    unsaved: Option<String>,
    /// The time of the next order at the soonest.
    earliest: Option<Deadline>,
    failed_orders: FailedOrders,
    /// The authority's last suggestion.
    window: Option<Window>,
    /// The time to ask the authority again for its suggestion; at once if there is none.
    ask_again: Option<Deadline>,
}

impl Group {
    /// A group whose certificate was not looked into yet.
    pub(crate) fn new(
        shared: &Arc<Shared>,
        names: Vec<String>,
        certificate: Option<Certificate>,
    ) -> Self {
        Self {
            shared: Arc::clone(shared),
            names,
            certificate,
            unsaved: None,
            earliest: None,
            failed_orders: FailedOrders::default(),
            window: None,
            ask_again: None,
        }
    }

    /// Keeps the certificate valid until the future is dropped.
    pub(crate) async fn run(mut self) -> Infallible {
        if self.shared.is_stale.load(Ordering::Relaxed) {
            self.read_again().await;
        }
        loop {
            self.until_due().await;
            let obtained = self.obtain().await;
            self.install(obtained).await;
        }
    }

    /// Serves the certificate on disk if it is a better one.
    async fn read_again(&mut self) {
        let (shared, names) = (Arc::clone(&self.shared), self.names.clone());
        let found = in_background(move || shared.on_disk(&names).pop()).await;
        let rank = |certificate: &Certificate| certificate.rank(&self.names);
        let before = self.certificate.as_ref().map(rank);
        if let Some(certificate) = found
            && Some(rank(&certificate)) > before
        {
            self.serve(certificate, true);
        }
    }

    async fn until_due(&mut self) {
        while let Some(renew_at) = self.renew_at().await {
            self.report(State::Waiting { renew_at });
            let clock = &*self.shared.clock;
            let wait = renew_at.duration_since(clock.now()).unwrap_or_default();
            if wait.is_zero() {
                return;
            }
            let others = [self.ask_again, self.earliest].into_iter().flatten();
            let wait = others.fold(wait, |wait, other| wait.min(other.left(clock)));
            let until = Deadline::after(wait, clock);
            self.rest(until).await;
        }
    }

    /// Returns the time of the renewal, or `None` if an order is due at once.
    async fn renew_at(&mut self) -> Option<SystemTime> {
        let certificate = self.certificate.as_ref()?;
        if !certificate.covers(&self.names) {
            return None;
        }
        let clock = &*self.shared.clock;
        let is_over = |deadline: &Deadline| deadline.is_over(clock);
        self.earliest = self.earliest.filter(|earliest| !is_over(earliest));
        if self.ask_again.as_ref().is_none_or(is_over) {
            let suggestion = self.suggestion(certificate).await;
            self.follow(suggestion);
        }
        let certificate = self.certificate.as_ref()?;
        let suggested = self
            .window
            .map_or(two_thirds(certificate), |window| window.chosen);
        let renew_at = suggested.min(latest(certificate));
        Some(
            self.earliest
                .map_or(renew_at, |earliest| earliest.at().max(renew_at)),
        )
    }

    /// Takes over the suggestion. If the authority fails, the one before stays; if it has given up
    /// suggesting, there is none any more.
    fn follow(&mut self, suggestion: Result<(Window, Duration), Failure>) {
        let ask_again_in = match suggestion {
            Ok((window, ask_again_in)) => {
                self.window = Some(window);
                ask_again_in
            }
            Err(failure) => {
                debug!(names = ?self.names, %failure, "the authority suggests no time of renewal");
                if failure.is_unsupported() {
                    self.window = None;
                }
                ASK_AGAIN_AFTER_FAILURE
            }
        };
        self.ask_again = Some(Deadline::after(ask_again_in, &*self.shared.clock));
    }

    /// Asks the authority when to renew, and when to ask again (RFC 9773).
    async fn suggestion(&self, certificate: &Certificate) -> Result<(Window, Duration), Failure> {
        let id = certificate.id.as_ref();
        let id = id.ok_or_else(|| Failure::other("the certificate does not name its authority"))?;
        let _permit = self.shared.permits.acquire().await;
        let ask = async {
            let account = self.shared.accounts.account().await?;
            account.renewal_info(id).await.map_err(Failure::from)
        };
        let limit = self.shared.limits.order_timeout;
        let asked = tokio::time::timeout(limit, ask).await;
        let (info, ask_again_in) = asked.unwrap_or_else(|_| Err(Failure::order_timeout(limit)))?;
        let window = Window::choose(&info, self.window)
            .ok_or_else(|| Failure::other("the time suggested ends before it begins"))?;
        Ok((window, ask_again_in.clamp(ASK_AGAIN_MIN, ASK_AGAIN_MAX)))
    }

    /// Tries until there is a certificate.
    async fn obtain(&mut self) -> Obtained {
        self.rest_after_restart().await;
        let mut waits = waits(&self.shared.limits);
        let mut attempts = 0;
        loop {
            self.report(State::Ordering);
            match self.attempt(attempts).await {
                Ok(obtained) => return obtained,
                Err(failure) => {
                    attempts = attempts.saturating_add(1);
                    self.shared.accounts.forget().await;
                    let wait = waits.next().unwrap_or(self.shared.limits.retry_max);
                    let wait = wait.max(self.pause(attempts));
                    let next = self.failed(&failure, attempts, wait);
                    self.rest(next).await;
                }
            }
        }
    }

    /// Waits as long as orders from before a restart allow no further ones.
    async fn rest_after_restart(&mut self) {
        let (store, name) = (Arc::clone(&self.shared.store), self.names[0].clone());
        let read = in_background(move || store.failed_orders(&name)).await;
        let tell = |error: &_| warn!(%error, "orders that have failed before are not known");
        let began = read.inspect_err(tell).unwrap_or_default();
        let count = began.len();
        self.failed_orders = FailedOrders::new(began);
        let pause = self.pause(0);
        if pause.is_zero() {
            return;
        }
        let window = format_duration(self.shared.limits.failed_orders_window());
        let failure = Failure::other(format!(
            "{count} orders within {window} have brought no certificate, and no more are placed \
             yet; the log from before the start says why they failed"
        ));
        let attempts = u32::try_from(count).unwrap_or(u32::MAX);
        let next = self.failed(&failure, attempts, pause);
        self.rest(next).await;
    }

    /// Returns the time until there may be an attempt after so many that have failed.
    fn pause(&self, failed: u32) -> Duration {
        let orders = self.shared.orders.kinds_after(failed).len();
        let window = self.shared.limits.failed_orders_window();
        let now = self.shared.clock.now();
        self.failed_orders.pause(orders, window, now)
    }

    /// Notes an order that begins, on disk too, where it stays until the certificate is saved.
    async fn note_order(&mut self) {
        self.failed_orders.add(self.shared.clock.now());
        let began = self.failed_orders.began().to_vec();
        let (store, name) = (Arc::clone(&self.shared.store), self.names[0].clone());
        let noted = in_background(move || store.save_failed_orders(&name, &began)).await;
        if let Err(error) = noted {
            warn!(names = ?self.names, %error, "an order will not be known of after a restart");
        }
    }

    /// Tries the kinds of challenges that are due after so many attempts.
    async fn attempt(&mut self, failed: u32) -> Result<Obtained, Failure> {
        let shared = Arc::clone(&self.shared);
        let mut first: Option<Failure> = None;
        for &kind in shared.orders.kinds_after(failed) {
            let limit = shared.limits.order_timeout;
            let permit = shared.permits.acquire().await;
            self.note_order().await;
            let ordered = tokio::time::timeout(limit, self.order(kind)).await;
            drop(permit);
            let failure = match ordered.unwrap_or_else(|_| Err(Failure::order_timeout(limit))) {
                Ok(obtained) => return Ok(obtained),
                Err(failure) => failure,
            };
            let is_other_way_open = failure.is_authorization();
            first = Some(match first {
                Some(first) => first.and(&failure),
                None => failure,
            });
            if !is_other_way_open {
                break;
            }
        }
        Err(first.expect("there is at least one kind of challenge"))
    }

    async fn order(&self, kind: ChallengeKind) -> Result<Obtained, Failure> {
        let Shared {
            accounts, orders, ..
        } = &*self.shared;
        let account = accounts.account().await?;
        let replaced = self.replaced();
        match orders.obtain(&account, &self.names, kind, replaced).await {
            Err(failure) if failure.is_account_unknown() => {
                accounts.unknown(&account).await?;
                let account = accounts.account().await?;
                orders.obtain(&account, &self.names, kind, None).await
            }
            obtained => obtained,
        }
    }

    /// The certificate that the order replaces (RFC 9773, 5), if the authority knows it.
    fn replaced(&self) -> Option<&CertificateIdentifier<'static>> {
        self.window?;
        self.certificate.as_ref()?.id.as_ref()
    }

    /// Tells of a failed attempt. Returns the time of the next one.
    fn failed(&self, failure: &Failure, attempts: u32, wait: Duration) -> Deadline {
        let wait = wait.max(failure.retry_after.unwrap_or(Duration::ZERO));
        let next = Deadline::after(wait, &*self.shared.clock);
        let advice = failure.advice();
        self.log_failure(failure, wait);
        self.report(State::Failed {
            reason: failure.to_string(),
            advice: advice.map(str::to_owned),
            attempts,
            next_attempt_at: next.at(),
        });
        next
    }

    fn log_failure(&self, failure: &Failure, wait: Duration) {
        let (names, advice, retry_seconds) = (&self.names, failure.advice(), wait.as_secs());
        let now = self.shared.clock.now();
        match &self.certificate {
            None => warn!(
                ?names, %failure, advice, retry_seconds,
                "a certificate could not be obtained yet"
            ),
            Some(certificate) if certificate.not_after <= now => error!(
                ?names, %failure, advice, retry_seconds,
                "a certificate has ended and cannot be renewed"
            ),
            Some(_) => warn!(
                ?names, %failure, advice, retry_seconds,
                "a certificate could not be renewed yet"
            ),
        }
    }

    /// Saves and serves the certificate.
    async fn install(&mut self, obtained: Obtained) {
        let Obtained { certificate, text } = obtained;
        let is_saved = self.save(text).await;
        let pause = pause(self.shared.limits.renewal_interval_min, &certificate);
        self.earliest = Some(Deadline::after(pause, &*self.shared.clock));
        let (serial, not_after) = (certificate.serial.clone(), certificate.not_after);
        self.serve(certificate, is_saved);
        info!(
            names = ?self.names, serial, not_after = %format_rfc3339_seconds(not_after),
            "a certificate is obtained"
        );
    }

    /// Waits, and tries meanwhile to save what could not be saved, such as on a disk that was full.
    async fn rest(&mut self, until: Deadline) {
        loop {
            let clock = &*self.shared.clock;
            let left = until.left(clock);
            if left.is_zero() {
                return;
            }
            let next = Deadline::after(left.min(SAVE_AGAIN_MAX), clock);
            next.wait(clock).await;
            self.save_again().await;
        }
    }

    async fn save_again(&mut self) {
        let Some(text) = self.unsaved.take() else {
            return;
        };
        if !self.save(text).await {
            return;
        }
        info!(names = ?self.names, "a certificate that could not be saved is saved now");
        self.shared.status.send_modify(|all| {
            let group = all.group(&self.names);
            if let Some(certificate) = group.and_then(|group| group.certificate.as_mut()) {
                certificate.is_saved = true;
            }
        });
    }

    /// Writes the certificate's file, whose text is kept if that fails. Returns true if it is
    /// written.
    async fn save(&mut self, text: String) -> bool {
        let (store, name) = (Arc::clone(&self.shared.store), self.names[0].clone());
        let write = move || (store.save_certificate(&name, text.as_bytes()), text);
        let (saved, text) = in_background(write).await;
        if let Err(error) = &saved {
            error!(names = ?self.names, %error, "a certificate is served, but could not be saved");
        }
        self.unsaved = saved.is_err().then_some(text);
        self.unsaved.is_none()
    }

    fn serve(&mut self, certificate: Certificate, is_saved: bool) {
        self.shared.certificates.install(&self.names, &certificate);
        let status = CertificateStatus::new(&certificate, is_saved);
        self.shared.status.send_modify(|all| {
            if let Some(group) = all.group(&self.names) {
                group.certificate = Some(status);
            }
        });
        self.certificate = Some(certificate);
        self.window = None;
        self.ask_again = None;
    }

    fn report(&self, state: State) {
        self.shared.status.send_if_modified(|all| {
            let Some(group) = all.group(&self.names) else {
                return false;
            };
            let is_new = group.state != state;
            group.state = state;
            is_new
        });
    }
}

fn waits(limits: &Limits) -> ExponentialBackoff {
    ExponentialBuilder::new()
        .with_min_delay(limits.retry_min)
        .with_max_delay(limits.retry_max)
        .without_max_times()
        .with_jitter()
        .build()
}

#[cfg(test)]
mod tests;
