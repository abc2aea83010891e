use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use instant_acme::{Error, RenewalInfo};
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use rustls::crypto::ring;
use serde_json::json;
use tempfile::TempDir;
use tokio::time::{Instant, sleep, timeout};

use super::*;
use crate::acme::Acme;
use crate::clock::tests::ManualClock;

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

/// Certificates of an authority that is away.
struct Away {
    acme: Acme,
    clock: ManualClock,
    _storage: TempDir,
}

impl Away {
    fn at(time: SystemTime) -> Self {
        let storage = tempfile::tempdir().expect("a directory");
        let clock = ManualClock::at(time);
        Self {
            acme: acme(storage.path(), &clock),
            clock,
            _storage: storage,
        }
    }

    /// Returns the group, as after this certificate was obtained.
    async fn group(&self, obtained: Obtained) -> Group {
        let names = vec!["example.org".to_owned()];
        let mut group = Group::new(&self.acme.handle.shared, names, None);
        group.install(obtained).await;
        group
    }

    fn is_saved(&self) -> bool {
        let status = self.acme.status();
        let status = status.borrow();
        let certificate = status.groups[0].certificate.as_ref();
        certificate.expect("it is served").is_saved
    }

    fn file(&self) -> PathBuf {
        let store = &self.acme.handle.shared.store;
        store.certificate_path("example.org")
    }
}

fn acme(storage: &Path, clock: &ManualClock) -> Acme {
    Acme::builder(storage)
        .agree_to_terms_of_service()
        .directory_url("https://127.0.0.1:1/directory")
        .roots(obtained().text)
        .clock(Arc::new(clock.clone()))
        .certificate(["example.org"])
        .build()
        .expect("it is complete")
}

/// The first moment of [`obtained`]: 2026-01-01.
fn begin() -> SystemTime {
    UNIX_EPOCH + 20_454 * DAY
}

/// Returns a certificate for 90 days.
fn obtained() -> Obtained {
    obtained_until(4, &["example.org"])
}

/// Returns a certificate for these names until the first day of this month.
fn obtained_until(month: u8, names: &[&str]) -> Obtained {
    let key = KeyPair::generate().expect("a key");
    let names: Vec<_> = names.iter().copied().map(str::to_owned).collect();
    let mut params = CertificateParams::new(names).expect("names");
    params.not_before = date_time_ymd(2026, 1, 1);
    params.not_after = date_time_ymd(2026, month, 1);
    let chain = params.self_signed(&key).expect("it signs itself").pem();
    let text = key.serialize_pem() + &chain;
    let certificate = Certificate::from_pem(text.as_bytes(), &ring::default_provider());
    Obtained {
        certificate: certificate.expect("a certificate"),
        text,
    }
}

/// Waits until so many attempts have failed.
async fn failed(status: &mut watch::Receiver<Status>, number: u32) {
    let is_there = |status: &Status| {
        let state = &status.groups[0].state;
        matches!(state, State::Failed { attempts, .. } if *attempts == number)
    };
    let failed = timeout(DAY, status.wait_for(is_there)).await;
    failed.expect("in time").expect("the task runs");
}

#[tokio::test(start_paused = true)]
async fn a_wall_clock_that_is_set_back_does_not_hold_up_a_retry() {
    let away = Away::at(begin());
    let mut status = away.acme.status();
    tokio::spawn(away.acme.run());
    failed(&mut status, 1).await;
    let begin = Instant::now();
    away.clock.set(away.clock.now() - 365 * DAY);
    failed(&mut status, 2).await;
    // After 4 to 8 min, and the time-out of a request at the most.
    let waited = begin.elapsed().as_secs();
    assert!((240..=510).contains(&waited), "{waited}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_restarts_in_a_loop_does_not_order_in_a_loop() {
    let storage = tempfile::tempdir().expect("a directory");
    let clock = ManualClock::at(begin());
    // Four orders, and a first attempt may need two: one for each kind of challenge.
    for _ in 0..4 {
        let acme = acme(storage.path(), &clock);
        let mut status = acme.status();
        let running = tokio::spawn(acme.run());
        failed(&mut status, 1).await;
        running.abort();
        assert!(running.await.is_err(), "it never ends by itself");
    }
    let acme = acme(storage.path(), &clock);
    let mut status = acme.status();
    let begin = Instant::now();
    tokio::spawn(acme.run());
    failed(&mut status, 4).await;
    let State::Failed {
        reason,
        next_attempt_at,
        ..
    } = status.borrow().groups[0].state.clone()
    else {
        unreachable!("it was waited for");
    };
    assert!(reason.starts_with("4 orders within 1h have"), "{reason}");
    assert_eq!(next_attempt_at, clock.now() + HOUR);
    failed(&mut status, 1).await;
    assert!(begin.elapsed() >= HOUR, "{:?}", begin.elapsed());
}

#[tokio::test(start_paused = true)]
async fn an_order_that_ends_with_its_process_counts() {
    let away = Away::at(begin());
    let names = vec!["example.org".to_owned()];
    let mut group = Group::new(&away.acme.handle.shared, names.clone(), None);
    group.note_order().await;
    let mut again = Group::new(&away.acme.handle.shared, names, None);
    again.rest_after_restart().await;
    assert_eq!(again.failed_orders.began(), [begin()]);
    // Until there is a certificate on disk.
    group.install(obtained()).await;
    again.rest_after_restart().await;
    assert!(again.failed_orders.began().is_empty());
}

#[tokio::test]
async fn a_certificate_is_found_whatever_the_order_of_its_names() {
    let away = Away::at(begin());
    let (handle, status) = (away.acme.handle(), away.acme.status());
    let store = &away.acme.handle.shared.store;
    let save = |name, month, names: &[&str]| {
        let Obtained { certificate, text } = obtained_until(month, names);
        let saved = store.save_certificate(name, text.as_bytes());
        saved.expect("there is room");
        certificate.not_after
    };
    let served = |names: [&str; 2]| {
        handle.set_certificates([names]).expect("they are names");
        let status = status.borrow();
        let certificate = status.groups[0].certificate.as_ref();
        certificate.expect("there is one").not_after
    };
    let (one, other) = ("example.org", "www.example.org");
    let april = save(one, 4, &[one, other]);
    assert_eq!(served([other, one]), april);
    let may = save(other, 5, &[other, one]);
    assert_eq!(served([one, other]), may, "it is the later one");
    save(one, 6, &[one]);
    assert_eq!(served([other, one]), may, "it is for both");
}

#[tokio::test(start_paused = true)]
async fn a_wall_clock_that_is_set_back_does_not_hold_up_a_renewal() {
    // A year ahead of the time at which the authority has given the certificate.
    let away = Away::at(begin() + 365 * DAY);
    let mut group = away.group(obtained()).await;
    away.clock.set(begin() + 85 * DAY);
    let obtained_at = Instant::now();
    let due = timeout(DAY, group.until_due()).await;
    due.expect("it is past two thirds of the life");
    assert_eq!(obtained_at.elapsed().as_secs(), HOUR.as_secs());
}

#[tokio::test(start_paused = true)]
async fn a_renewal_waits_for_the_wall_clock() {
    let away = Away::at(begin() + DAY);
    let mut group = away.group(obtained()).await;
    let due = timeout(365 * DAY, group.until_due()).await;
    assert!(due.is_err(), "the wall clock stands still");
    away.clock.set(begin() + 60 * DAY);
    let due = timeout(HOUR, group.until_due()).await;
    due.expect("it is at two thirds of the life");
}

#[tokio::test(start_paused = true)]
async fn a_certificate_that_could_not_be_saved_is_saved_within_an_hour_of_when_it_can_be() {
    let away = Away::at(begin() + DAY);
    let file = away.file();
    // A file where the folder is to be fails as a full disk does.
    let folder = file.parent().expect("it is below the storage");
    fs::create_dir(folder.parent().expect("it too")).expect("there is room");
    fs::write(folder, "").expect("there is room");
    let obtained = obtained();
    let text = obtained.text.clone();
    let group = away.group(obtained).await;
    assert!(!away.is_saved());
    tokio::spawn(group.run());
    sleep(10 * HOUR).await;
    assert!(!away.is_saved());
    fs::remove_file(folder).expect("it is there");
    sleep(HOUR + SECOND).await;
    assert!(away.is_saved());
    assert_eq!(fs::read_to_string(&file).expect("it is there"), text);
}

#[tokio::test(start_paused = true)]
async fn a_certificate_that_could_not_be_saved_is_saved_while_its_renewal_fails() {
    let away = Away::at(begin() + 61 * DAY);
    let file = away.file();
    fs::create_dir_all(file.join("in the way")).expect("there is room");
    let group = away.group(obtained()).await;
    away.clock.set(begin() + 62 * DAY);
    tokio::spawn(group.run());
    // By now an attempt comes every 6 to 12 h.
    failed(&mut away.acme.status(), 8).await;
    assert!(!away.is_saved());
    fs::remove_dir_all(&file).expect("it is there");
    sleep(HOUR + SECOND).await;
    assert!(away.is_saved());
}

#[tokio::test]
async fn a_suggestion_stays_while_the_authority_fails_and_goes_when_it_suggests_none() {
    let away = Away::at(begin() + DAY);
    let mut group = away.group(obtained()).await;
    let info = json!({ "suggestedWindow": {
        "start": "2026-02-01T00:00:00Z",
        "end": "2026-02-02T00:00:00Z",
    }});
    let info: RenewalInfo = serde_json::from_value(info).expect("a suggestion");
    let window = Window::choose(&info, None).expect("a window");
    group.follow(Ok((window, HOUR)));
    assert_eq!(group.renew_at().await, Some(window.chosen));
    group.follow(Err(Failure::other("it is away")));
    assert_eq!(group.renew_at().await, Some(window.chosen));
    group.follow(Err(Error::Unsupported("renewal information").into()));
    assert_eq!(group.renew_at().await, Some(begin() + 60 * DAY));
}
