//! Renewals.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use greenroom_acme::{CertificateStatus, State};
use instant_acme::{Account, AccountCredentials, RevocationRequest};
use rustls::pki_types::CertificateDer;
use tempfile::TempDir;

use crate::ca::{Ca, Options};
use crate::clock::ManualClock;
use crate::site::{Site, connect, echo, serial, shown};
use crate::store::{account_file, certificate_file};
use crate::{Running, builder};

const DAY: Duration = Duration::from_hours(24);

/// A suggestion to have renewed already.
const PAST: &str = r#"{"suggestedWindow":
    {"start":"2025-01-02T04:00:00Z","end":"2025-01-03T04:00:00Z"}}"#;

/// A site with a certificate of its authority.
struct Served {
    ca: Ca,
    clock: ManualClock,
    storage: TempDir,
    running: Running,
    certificate: CertificateStatus,
    site: Site,
}

impl Served {
    async fn new() -> Self {
        Self::by(Ca::start()).await
    }

    async fn by(ca: Ca) -> Self {
        let storage = tempfile::tempdir().expect("a directory");
        let clock = ManualClock::new();
        let acme = builder(&ca, storage.path())
            .clock(Arc::new(clock.clone()))
            .certificate(["example.org"])
            .build()
            .expect("it is complete");
        let site = Site::start(&ca, &acme).await;
        let mut running = Running::start(acme);
        let certificate = running.certificate().await;
        // It was asked when to renew.
        running
            .until(|status| is_waiting(&status.groups[0].state))
            .await;
        Self {
            ca,
            clock,
            storage,
            running,
            certificate,
            site,
        }
    }
}

fn is_waiting(state: &State) -> bool {
    matches!(state, State::Waiting { .. })
}

/// The part of a certificate's file behind the key.
fn chain(storage: &Path) -> String {
    let text = fs::read_to_string(certificate_file(storage, "example.org")).expect("it is there");
    let begin = text.find("-----BEGIN CERTIFICATE-----");
    text[begin.expect("a chain")..].to_owned()
}

#[tokio::test]
async fn a_renewal_loses_no_connection() {
    let mut served = Served::new().await;
    let root = served.ca.root().await;
    let connect = async || connect(&served.ca, "example.org", root.clone()).await;
    let mut before = connect().await.expect("it is served");
    echo(&mut before).await;
    served.clock.advance(45 * DAY);
    let again = connect().await.expect("it is served");
    assert_eq!(serial(&shown(&again)), served.certificate.serial);
    // In its 90 days, the authority suggests days 59 to 61.
    served.clock.advance(17 * DAY);
    let renewed = served.running.renewed(&served.certificate).await;
    let after = connect().await.expect("it is served");
    assert_eq!(serial(&shown(&after)), renewed.serial);
    echo(&mut before).await;
    assert_eq!(serial(&shown(&before)), served.certificate.serial);
    // The authority was told what is replaced, so that its limits do not count the order.
    served.ca.logged("is a replacement of").await;
}

#[tokio::test]
async fn rfc9773_the_authority_can_bring_a_renewal_forward() {
    let mut served = Served::new().await;
    let window = r#"{"suggestedWindow":
        {"start":"2025-01-02T04:00:00Z","end":"2025-01-03T04:00:00Z"}}"#;
    served
        .ca
        .suggest(&chain(served.storage.path()), window)
        .await;
    // It is asked again after the 6 hours that it has named.
    served.clock.advance(Duration::from_hours(7));
    served.running.renewed(&served.certificate).await;
}

#[tokio::test]
async fn rfc8555_7_1_3_a_name_that_is_still_authorized_is_not_validated_again() {
    let mut served = Served::by(Ca::start_with(Options {
        reuses_authorizations: true,
        ..Options::default()
    }))
    .await;
    served.site.stop().await;
    served.ca.suggest(&chain(served.storage.path()), PAST).await;
    served.clock.advance(Duration::from_hours(7));
    served.running.renewed(&served.certificate).await;
}

#[tokio::test]
async fn a_revoked_certificate_is_replaced() {
    let mut served = Served::new().await;
    let account = fs::read(account_file(served.storage.path())).expect("it is there");
    let account: AccountCredentials = serde_json::from_slice(&account).expect("an account");
    let account = Account::builder_with_http(served.ca.client())
        .from_credentials(account)
        .await
        .expect("it is known");
    let certificate = connect(&served.ca, "example.org", served.ca.root().await).await;
    let certificate: CertificateDer<'_> = shown(&certificate.expect("it is served"));
    let request = RevocationRequest {
        certificate: &certificate,
        reason: None,
    };
    account.revoke(&request).await.expect("it is revoked");
    served.clock.advance(Duration::from_hours(7));
    served.running.renewed(&served.certificate).await;
}

#[tokio::test]
async fn without_a_suggestion_two_thirds_of_the_life_are_waited_for() {
    let served = Served::new().await;
    served.running.stop().await;
    served.site.stop().await;
    served
        .ca
        .suggest(&chain(served.storage.path()), "what?")
        .await;
    let acme = builder(&served.ca, served.storage.path())
        .clock(Arc::new(served.clock.clone()))
        .certificate(["example.org"])
        .build()
        .expect("it is complete");
    let _site = Site::start(&served.ca, &acme).await;
    let mut running = Running::start(acme);
    let status = running
        .until(|status| is_waiting(&status.groups[0].state))
        .await;
    let certificate = &served.certificate;
    let life = certificate.not_after.duration_since(certificate.not_before);
    let renew_at = certificate.not_before + life.expect("in order") * 2 / 3;
    assert_eq!(status.groups[0].state, State::Waiting { renew_at });
    served.clock.set(renew_at);
    running.renewed(certificate).await;
}

#[tokio::test]
async fn an_authority_that_always_says_now_is_asked_once_an_hour() {
    let mut served = Served::new().await;
    // By this clock every certificate that the authority gives has ended before it begins.
    served.clock.advance(365 * DAY);
    let first = served.running.renewed(&served.certificate).await;
    let status = served
        .running
        .until(|status| is_waiting(&status.groups[0].state))
        .await;
    let State::Waiting { renew_at } = status.groups[0].state else {
        unreachable!("it was waited for");
    };
    let wait = renew_at.duration_since(greenroom_acme::Clock::now(&served.clock));
    assert_eq!(wait.expect("it is later"), Duration::from_hours(1));
    served.clock.set(renew_at);
    served.running.renewed(&first).await;
}
