//! The first certificate.

use std::sync::Arc;

use greenroom_acme::{ChallengeKind, PATH_PREFIX, State};
use rustls::RootCertStore;
use rustls::pki_types::ServerName;

use crate::ca::{Ca, Options};
use crate::clock::ManualClock;
use crate::log;
use crate::site::{Site, connect, connect_as, echo, get, serial, shown};
use crate::{Running, builder};

/// Obtains a certificate by this kind of challenge alone, and is served with it.
async fn obtain_by(kind: ChallengeKind) {
    let (ca, storage) = (Ca::start(), tempfile::tempdir().expect("a directory"));
    let acme = builder(&ca, storage.path())
        .challenges([kind])
        .certificate(["example.org"])
        .build()
        .expect("it is complete");
    let mut site = Site::default();
    site.serve_tls(&ca, &acme).await;
    if kind == ChallengeKind::Http01 {
        site.serve_http(&ca, &acme).await;
    }
    assert!(
        connect(&ca, "example.org", RootCertStore::empty())
            .await
            .is_err()
    );
    let mut running = Running::start(acme);
    let certificate = running.certificate().await;
    let mut stream = connect(&ca, "example.org", ca.root().await)
        .await
        .expect("a certificate of the authority");
    echo(&mut stream).await;
    assert_eq!(serial(&shown(&stream)), certificate.serial);
    assert_eq!(certificate.names, ["example.org"]);
    assert!(certificate.is_saved);
}

#[tokio::test]
async fn rfc8555_8_3_a_name_is_validated_by_plain_http() {
    obtain_by(ChallengeKind::Http01).await;
}

#[tokio::test]
async fn rfc8737_3_a_name_is_validated_by_a_handshake() {
    obtain_by(ChallengeKind::TlsAlpn01).await;
}

#[tokio::test]
async fn names_get_their_group_s_certificate_and_others_none() {
    let (ca, storage) = (Ca::start(), tempfile::tempdir().expect("a directory"));
    let acme = builder(&ca, storage.path())
        .contact("ada@example.org")
        .certificate(["example.org", "www.example.org", "A.example.org"])
        .certificate(["example.net"])
        .build()
        .expect("it is complete");
    let _site = Site::start(&ca, &acme).await;
    let mut running = Running::start(acme);
    let status = running
        .until(|status| {
            status
                .groups
                .iter()
                .all(|group| group.certificate.is_some())
        })
        .await;
    let root = ca.root().await;
    for (group, name) in [
        (0, "example.org"),
        (0, "www.example.org"),
        (0, "a.example.org"),
        (1, "example.net"),
    ] {
        let stream = connect(&ca, name, root.clone())
            .await
            .expect("it is served");
        let certificate = status.groups[group].certificate.as_ref();
        assert_eq!(
            serial(&shown(&stream)),
            certificate.expect("it is there").serial
        );
    }
    assert!(connect(&ca, "example.com", root.clone()).await.is_err());
    let address = ServerName::try_from("127.0.0.1").expect("an address");
    assert!(connect_as(&ca, address, root.clone(), &[]).await.is_err());
    // Nobody but the authority, and that only while it validates, gets anything by this protocol.
    let name = ServerName::try_from("example.org").expect("a name");
    let alone = connect_as(&ca, name.clone(), root.clone(), &[b"acme-tls/1"]).await;
    assert!(alone.is_err());
    let both = connect_as(&ca, name, root, &[b"acme-tls/1", b"http/1.1"]).await;
    let both = both.expect("it is a client as any other");
    assert_eq!(both.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
}

#[tokio::test]
async fn the_status_is_data() {
    let (ca, storage) = (Ca::start(), tempfile::tempdir().expect("a directory"));
    let acme = builder(&ca, storage.path())
        .profile("shortlived")
        .certificate(["example.org"])
        .build()
        .expect("it is complete");
    let _site = Site::start(&ca, &acme).await;
    let mut running = Running::start(acme);
    let is_waiting = |state: &State| matches!(state, State::Waiting { .. });
    let status = running
        .until(|status| is_waiting(&status.groups[0].state))
        .await;
    let data = serde_json::to_value(&status).expect("it is plain data");
    let group = &data["groups"][0];
    assert_eq!(group["names"][0], "example.org");
    assert_eq!(group["state"]["state"], "waiting");
    let time = |value: &serde_json::Value| {
        let text = value.as_str().expect("text");
        humantime_serde::re::humantime::parse_rfc3339(text).expect("a time of RFC 3339")
    };
    let begin = time(&group["certificate"]["not_before"]);
    let end = time(&group["certificate"]["not_after"]);
    let days = end
        .duration_since(begin)
        .expect("in order")
        .as_secs()
        .div_ceil(86_400);
    assert_eq!(days, 6);
    assert!((begin..end).contains(&time(&group["state"]["renew_at"])));
}

#[tokio::test]
async fn the_other_kind_of_challenge_is_tried_if_one_fails() {
    let (ca, storage) = (Ca::start(), tempfile::tempdir().expect("a directory"));
    let acme = builder(&ca, storage.path())
        .certificate(["example.org", "www.example.org"])
        .build()
        .expect("it is complete");
    let mut site = Site::default();
    site.serve_tls(&ca, &acme).await;
    let mut running = Running::start(acme);
    running.certificate().await;
}

#[tokio::test]
async fn a_site_that_cannot_be_reached_is_told_of_and_tried_again() {
    let (ca, storage) = (Ca::start(), tempfile::tempdir().expect("a directory"));
    let clock = ManualClock::new();
    let acme = builder(&ca, storage.path())
        .clock(Arc::new(clock.clone()))
        .certificate(["example.org"])
        .build()
        .expect("it is complete");
    let (http01, certificates) = (acme.http01(), acme.certificates());
    log::start();
    let mut running = Running::start(acme);
    let (reason, advice) = running.failure().await;
    assert!(
        reason.contains("validate example.org by http-01: "),
        "{reason}"
    );
    assert!(
        reason.contains("validate example.org by tls-alpn-01: "),
        "{reason}"
    );
    let advice = advice.expect("it is a well-known mistake");
    assert!(advice.contains("A and AAAA records"), "{advice}");
    let line = log::line("a certificate could not be obtained yet");
    for part in ["WARN", "example.org", "connection refused", &*advice] {
        assert!(line.contains(part), "{line}");
    }
    let mut site = Site::default();
    site.serve_http_by(&ca, http01).await;
    site.serve_tls_by(&ca, certificates).await;
    running.certificate_at_last(&clock).await;
    let line = log::line("a certificate is obtained");
    assert!(
        line.contains("INFO") && line.contains("example.org"),
        "{line}"
    );
}

#[tokio::test]
async fn of_two_groups_one_is_refused_and_the_other_served() {
    let (ca, storage) = (Ca::start(), tempfile::tempdir().expect("a directory"));
    let acme = builder(&ca, storage.path())
        .certificate(["blocked.example"])
        .certificate(["example.org"])
        .build()
        .expect("it is complete");
    let _site = Site::start(&ca, &acme).await;
    let mut running = Running::start(acme);
    let (reason, _) = running.failure().await;
    assert!(reason.contains("blocked.example"), "{reason}");
    let status = running
        .until(|status| status.groups[1].certificate.is_some())
        .await;
    assert!(status.groups[0].certificate.is_none());
}

#[tokio::test]
async fn rfc8555_7_3_4_an_account_is_bound_to_an_external_one() {
    const KEY: &str = "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W";
    let ca = Ca::start_with(Options {
        external_account: Some(("kid-1", KEY)),
        ..Options::default()
    });
    let storage = tempfile::tempdir().expect("a directory");
    let unbound = builder(&ca, storage.path()).certificate(["example.org"]);
    let mut running = Running::start(unbound.build().expect("it is complete"));
    let (_, advice) = running.failure().await;
    assert!(advice.expect("advice").contains("external account"));
    running.stop().await;

    let acme = builder(&ca, storage.path())
        .external_account("kid-1", KEY)
        .certificate(["example.org"])
        .build()
        .expect("it is complete");
    let _site = Site::start(&ca, &acme).await;
    Running::start(acme).certificate().await;
}

#[tokio::test]
async fn requests_that_are_no_challenge_are_the_application_s() {
    let (ca, storage) = (Ca::start(), tempfile::tempdir().expect("a directory"));
    let acme = builder(&ca, storage.path())
        .certificate(["example.org"])
        .build()
        .expect("it is complete");
    let _site = Site::start(&ca, &acme).await;
    let application = (200, "the application".to_owned());
    assert_eq!(get(&ca, "example.org", "/").await, application);
    assert_eq!(
        get(&ca, "example.org", "/.well-known/other").await,
        application
    );
    let (status, text) = get(&ca, "example.org", &format!("{PATH_PREFIX}unknown")).await;
    assert_eq!(status, 404);
    assert_ne!(text, application.1);
}

#[tokio::test]
async fn names_are_set_while_it_runs() {
    let (ca, storage) = (Ca::start(), tempfile::tempdir().expect("a directory"));
    let acme = builder(&ca, storage.path())
        .certificate(["example.org"])
        .build()
        .expect("it is complete");
    let _site = Site::start(&ca, &acme).await;
    let handle = acme.handle();
    let mut running = Running::start(acme);
    let first = running.certificate().await;
    let root = ca.root().await;
    let both = [["example.org"], ["example.net"]];
    handle.set_certificates(both).expect("they are names");
    let status = running
        .until(|status| {
            let mut groups = status.groups.iter();
            groups.all(|group| group.certificate.is_some())
        })
        .await;
    assert_eq!(status.groups[0].certificate, Some(first));
    let stream = connect(&ca, "example.net", root.clone()).await;
    stream.expect("it is served");
    handle.set_certificates([["example.net"]]).expect("a name");
    assert!(connect(&ca, "example.org", root.clone()).await.is_err());
    // On disk it has stayed, and so it is served at once.
    handle.set_certificates(both).expect("they are names");
    let stream = connect(&ca, "example.org", root).await;
    stream.expect("it is served");
}
