//! Authorities that fail.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use greenroom_acme::{Acme, Limits};
use tokio::sync::Semaphore;

use crate::ca::{Ca, Options};
use crate::clock::ManualClock;
use crate::site::{Gate, Site, connect, serial, shown};
use crate::store::asides;
use crate::{DEADLINE, Running, builder, within};

#[tokio::test]
async fn rfc8555_6_5_every_second_nonce_may_be_refused() {
    let ca = Ca::start_with(Options {
        nonces_rejected: 50,
        ..Options::default()
    });
    let storage = tempfile::tempdir().expect("a directory");
    let clock = ManualClock::new();
    let acme = builder(&ca, storage.path())
        .clock(Arc::new(clock.clone()))
        .certificate(["example.org", "www.example.org"])
        .build()
        .expect("it is complete");
    let _site = Site::start(&ca, &acme).await;
    // The clock stands still: there is no second attempt.
    Running::start(acme).certificate().await;
}

#[tokio::test]
async fn a_slow_authority_is_not_waited_for_and_asked_again() {
    let (ca, storage) = (Ca::start(), tempfile::tempdir().expect("a directory"));
    let clock = ManualClock::new();
    let acme = builder(&ca, storage.path())
        .limits(Limits {
            request_timeout: Duration::from_secs(2),
            ..Limits::default()
        })
        .clock(Arc::new(clock.clone()))
        .certificate(["example.org"])
        .build()
        .expect("it is complete");
    let _site = Site::start(&ca, &acme).await;
    ca.freeze();
    let mut running = Running::start(acme);
    let (reason, advice) = running.failure().await;
    assert!(reason.contains("did not respond within 2s"), "{reason}");
    assert!(advice.expect("advice").contains("must reach the authority"));
    ca.thaw();
    running.certificate_at_last(&clock).await;
}

#[tokio::test]
async fn an_order_has_an_end() {
    let (ca, storage) = (Ca::start(), tempfile::tempdir().expect("a directory"));
    let acme = builder(&ca, storage.path())
        .limits(Limits {
            order_timeout: Duration::from_millis(1),
            ..Limits::default()
        })
        .clock(Arc::new(ManualClock::new()))
        .certificate(["example.org"])
        .build()
        .expect("it is complete");
    ca.freeze();
    let (reason, _) = Running::start(acme).failure().await;
    assert!(reason.contains("not done within 1ms"), "{reason}");
}

#[tokio::test]
async fn an_authority_that_dies_midway_and_forgets_all_is_ordered_from_again() {
    let (mut ca, storage) = (Ca::start(), tempfile::tempdir().expect("a directory"));
    let clock = ManualClock::new();
    let acme = builder(&ca, storage.path())
        .clock(Arc::new(clock.clone()))
        .certificate(["example.org"])
        .build()
        .expect("it is complete");
    let gate = Arc::new(Gate {
        responses: Semaphore::new(0),
        ..Gate::default()
    });
    let mut site = Site::held_by(&gate);
    site.serve_http(&ca, &acme).await;
    let mut running = Running::start(acme);
    within(gate.asked.notified()).await;
    ca.kill();
    gate.responses.add_permits(1000);
    let (reason, _) = running.failure().await;
    assert!(reason.contains("cannot be reached"), "{reason}");
    ca.run();
    running.certificate_at_last(&clock).await;
    // Its data is lost, and with it the account; the key is kept.
    assert_eq!(asides(storage.path()), 1);
}

/// Returns a client for one name, at this clock.
fn acme(ca: &Ca, storage: &Path, clock: &ManualClock) -> Acme {
    builder(ca, storage)
        .clock(Arc::new(clock.clone()))
        .certificate(["example.org"])
        .build()
        .expect("it is complete")
}

#[tokio::test]
async fn a_server_that_restarts_in_a_loop_does_not_order_in_a_loop() {
    let (ca, storage) = (Ca::start(), tempfile::tempdir().expect("a directory"));
    let clock = ManualClock::new();
    let build = || acme(&ca, storage.path(), &clock);
    // Nobody responds to the authority. Each start tries both kinds of challenges, as long as there
    // are not more than five failed validations in an hour.
    for _ in 0..4 {
        let mut running = Running::start(build());
        running.failure().await;
        running.stop().await;
    }
    assert_eq!(ca.orders(), 4);
    let acme = build();
    let _site = Site::start(&ca, &acme).await;
    let mut running = Running::start(acme);
    let (reason, _) = running.failure().await;
    assert!(reason.contains("have brought no certificate"), "{reason}");
    running.certificate_at_last(&clock).await;
}

#[tokio::test]
async fn the_old_certificate_is_served_while_the_authority_is_away() {
    let (mut ca, storage) = (Ca::start(), tempfile::tempdir().expect("a directory"));
    let clock = ManualClock::new();
    let build = || acme(&ca, storage.path(), &clock);
    let acme = build();
    let site = Site::start(&ca, &acme).await;
    let mut running = Running::start(acme);
    let certificate = running.certificate().await;
    running.stop().await;
    site.stop().await;
    let root = ca.root().await;
    let acme = build();
    ca.kill();
    clock.set(certificate.not_after - Duration::from_hours(24));

    let _site = Site::start(&ca, &acme).await;
    let served = connect(&ca, "example.org", root.clone()).await;
    assert_eq!(
        serial(&shown(&served.expect("it is served"))),
        certificate.serial
    );
    let mut running = Running::start(acme);
    let (reason, _) = running.failure().await;
    assert!(reason.contains("cannot be reached"), "{reason}");
    assert_eq!(running.certificate().await, certificate);
    let served = connect(&ca, "example.org", root).await;
    assert_eq!(
        serial(&shown(&served.expect("it is served"))),
        certificate.serial
    );
    ca.run();
    clock.advance(Duration::from_hours(24));
    running.renewed(&certificate).await;
}

#[tokio::test]
async fn an_authority_that_nobody_vouches_for_is_told_of() {
    let (ca, storage) = (Ca::start(), tempfile::tempdir().expect("a directory"));
    let acme = builder(&ca, storage.path())
        .roots(Ca::start().https_root())
        .limits(Limits {
            request_timeout: DEADLINE,
            ..Limits::default()
        })
        .clock(Arc::new(ManualClock::new()))
        .certificate(["example.org"])
        .build()
        .expect("it is complete");
    let (reason, advice) = Running::start(acme).failure().await;
    assert!(reason.contains("certificate"), "{reason}");
    assert!(
        advice
            .expect("advice")
            .contains("root of a private authority")
    );
}
