//! The files on disk.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use greenroom_acme::{BuildError, State, StoreError};

use crate::ca::Ca;
use crate::log;
use crate::site::{Site, connect, serial, shown};
use crate::{Running, builder};

/// Returns the directory of the one authority in the storage.
fn of_authority(storage: &Path) -> PathBuf {
    let entries = fs::read_dir(storage).expect("a directory");
    let mut paths = entries.map(|entry| entry.expect("an entry").path());
    paths.find(|path| path.is_dir()).expect("it was made")
}

pub(crate) fn account_file(storage: &Path) -> PathBuf {
    of_authority(storage).join("account.json")
}

pub(crate) fn certificate_file(storage: &Path, name: &str) -> PathBuf {
    let directory = of_authority(storage).join("certificates").join(name);
    directory.join("certificate.pem")
}

/// Counts the keys that were set aside.
pub(crate) fn asides(storage: &Path) -> usize {
    let entries = fs::read_dir(of_authority(storage)).expect("a directory");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    names
        .filter(|name| name.to_string_lossy().starts_with("account-"))
        .count()
}

/// Obtains a certificate for `example.org`, and ends.
async fn obtain(ca: &Ca, storage: &Path) {
    let acme = builder(ca, storage)
        .certificate(["example.org"])
        .build()
        .expect("it is complete");
    let site = Site::start(ca, &acme).await;
    let mut running = Running::start(acme);
    running.certificate().await;
    running.stop().await;
    site.stop().await;
}

#[tokio::test]
async fn an_account_is_registered_once() {
    let (ca, storage) = (Ca::start(), tempfile::tempdir().expect("a directory"));
    obtain(&ca, storage.path()).await;
    let account = fs::read(account_file(storage.path())).expect("it was saved");
    fs::remove_file(certificate_file(storage.path(), "example.org")).expect("it was saved");
    obtain(&ca, storage.path()).await;
    assert!(certificate_file(storage.path(), "example.org").is_file());
    assert_eq!(
        fs::read(account_file(storage.path())).expect("it is there"),
        account
    );
    assert_eq!(asides(storage.path()), 0);
}

#[tokio::test]
async fn nobody_else_can_read_the_keys() {
    let (ca, parent) = (Ca::start(), tempfile::tempdir().expect("a directory"));
    let storage = parent.path().join("not/there/yet");
    obtain(&ca, &storage).await;
    let mode = |path: &Path| {
        let found = fs::metadata(path).expect("it is there");
        found.permissions().mode()
    };
    // Another user, who is to have the directory one day, can pass those above it.
    for above in ["not", "not/there"] {
        assert_eq!(mode(&parent.path().join(above)) & 0o055, 0o055, "{above}");
    }
    let mut files = 0;
    let mut directories = vec![storage];
    while let Some(directory) = directories.pop() {
        assert_eq!(mode(&directory) & 0o777, 0o700, "{}", directory.display());
        for entry in fs::read_dir(&directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                directories.push(path);
            } else {
                assert_eq!(mode(&path) & 0o777, 0o600, "{}", path.display());
                files += 1;
            }
        }
    }
    assert_eq!(files, 3, "the lock, the account, the certificate");
}

#[tokio::test]
async fn a_directory_belongs_to_one() {
    let (ca, storage) = (Ca::start(), tempfile::tempdir().expect("a directory"));
    let build = || {
        builder(&ca, storage.path())
            .certificate(["example.org"])
            .build()
    };
    let first = build().expect("it is free");
    let error = build().expect_err("it is in use");
    let text = error.to_string();
    assert!(
        text.contains(&storage.path().display().to_string()),
        "{text}"
    );
    let process = std::process::id();
    assert!(
        text.contains(&format!("in use by process {process}")),
        "{text}"
    );
    let BuildError::Store(StoreError::InUse { holder, .. }) = error else {
        panic!("another error: {error:?}");
    };
    assert_eq!(holder, Some(process));
    Running::start(first).stop().await;
    build().expect("it is free again");
}

#[tokio::test]
async fn a_lock_that_is_handed_over_is_two_processes_and_nobody_else_s() {
    let (ca, storage) = (Ca::start(), tempfile::tempdir().expect("a directory"));
    let build = || builder(&ca, storage.path()).certificate(["example.org"]);
    let first = build().build().expect("it is free");
    let handed = first.lock().try_clone().expect("it can be duplicated");
    let next = build().lock(handed).build().expect("it was handed over");
    assert!(next.status().borrow().groups[0].certificate.is_none());
    // What the first one obtains while the next one loads is the next one's without an order.
    let site = Site::start(&ca, &first).await;
    let mut running = Running::start(first);
    let obtained = running.certificate().await;
    running.stop().await;
    site.stop().await;
    let error = build().build().expect_err("it is in use");
    assert!(error.to_string().contains("in use by process"), "{error}");
    assert_eq!(Running::start(next).certificate().await, obtained);
    assert!(asides(storage.path()) == 0 && ca.orders() == 1);
}

#[tokio::test]
async fn the_lock_of_another_directory_locks_nothing() {
    let ca = Ca::start();
    let storages = [(); 2].map(|()| tempfile::tempdir().expect("a directory"));
    let build = |index: usize| builder(&ca, storages[index].path());
    let other = build(0).build().expect("it is free");
    let handed = other.lock().try_clone().expect("it can be duplicated");
    let _first = build(1).lock(handed).build().expect("it is free");
    let handed = other.lock().try_clone().expect("it can be duplicated");
    let error = build(1).lock(handed).build().expect_err("it is in use");
    assert!(error.to_string().contains("in use by process"), "{error}");
}

#[tokio::test]
async fn who_may_wait_gets_the_directory_when_it_is_free() {
    let (ca, storage) = (Ca::start(), tempfile::tempdir().expect("a directory"));
    let build = || builder(&ca, storage.path()).certificate(["example.org"]);
    let first = build().build().expect("it is free");
    let next = build().wait_for_lock().build().expect("it may wait");
    let mut next = Running::start(next);
    let site = Site::start(&ca, &first).await;
    let mut running = Running::start(first);
    let obtained = running.certificate().await;
    let has_it = |next: &Running| next.status.borrow().groups[0].certificate.is_some();
    assert!(!has_it(&next), "nothing is done while it waits");
    running.stop().await;
    site.stop().await;
    assert_eq!(next.certificate().await, obtained);
    assert_eq!(ca.orders(), 1);
}

#[tokio::test]
async fn what_is_no_file_is_refused_and_nobody_waits_for_it() {
    use std::os::unix::fs::symlink;

    let (ca, storage) = (Ca::start(), tempfile::tempdir().expect("a directory"));
    let (lock, other) = (storage.path().join("lock"), storage.path().join("other"));
    fs::write(&other, "whole").expect("it can be written");
    let refused = |said: &str| {
        let error = builder(&ca, storage.path()).build();
        let error = error.expect_err("it is refused").to_string();
        assert!(error.starts_with(&lock.display().to_string()), "{error}");
        assert!(error.contains(said), "{error}");
        fs::remove_file(&lock).expect("it is there");
    };
    symlink(&other, &lock).expect("a link");
    refused("it is a link");
    fs::hard_link(&other, &lock).expect("a link");
    refused("it is a link");
    mkfifo(&lock);
    refused("it is no regular file");
    assert_eq!(fs::read(&other).expect("it is there"), b"whole");
    // A certificate is ordered anew then.
    obtain(&ca, storage.path()).await;
    let file = certificate_file(storage.path(), "example.org");
    fs::remove_file(&file).expect("it was saved");
    mkfifo(&file);
    obtain(&ca, storage.path()).await;
    assert!(file.is_file());
}

fn mkfifo(path: &Path) {
    let status = std::process::Command::new("mkfifo").arg(path).status();
    assert!(status.expect("mkfifo of coreutils").success());
}

#[tokio::test]
async fn a_damaged_certificate_is_told_of_and_ordered_anew() {
    let (ca, storage) = (Ca::start(), tempfile::tempdir().expect("a directory"));
    obtain(&ca, storage.path()).await;
    let file = certificate_file(storage.path(), "example.org");
    let whole = fs::read(&file).expect("it was saved");
    fs::write(&file, &whole[..whole.len() / 3]).expect("it can be written");
    log::start();
    let acme = builder(&ca, storage.path())
        .certificate(["example.org"])
        .build()
        .expect("it is no reason to stop");
    let line = log::line("a certificate is damaged");
    assert!(line.contains("ERROR"), "{line}");
    assert!(line.contains(&file.display().to_string()), "{line}");
    assert!(acme.status().borrow().groups[0].certificate.is_none());
    let _site = Site::start(&ca, &acme).await;
    Running::start(acme).certificate().await;
    assert_ne!(fs::read(&file).expect("it is there"), whole);
}

#[tokio::test]
async fn a_damaged_account_is_kept_and_another_registered() {
    let (ca, storage) = (Ca::start(), tempfile::tempdir().expect("a directory"));
    obtain(&ca, storage.path()).await;
    fs::write(account_file(storage.path()), "{").expect("it can be written");
    fs::remove_file(certificate_file(storage.path(), "example.org")).expect("it was saved");
    obtain(&ca, storage.path()).await;
    assert_eq!(asides(storage.path()), 1);
    assert!(
        fs::read(account_file(storage.path()))
            .expect("it is there")
            .len()
            > 1
    );
}

#[tokio::test]
async fn a_name_that_is_added_does_not_take_the_others_off_line() {
    for names in [
        ["example.org", "www.example.org"],
        ["www.example.org", "example.org"],
    ] {
        add_a_name(names).await;
    }
}

/// Adds `www.example.org` to a certificate for `example.org`.
async fn add_a_name(names: [&str; 2]) {
    let (ca, storage) = (Ca::start(), tempfile::tempdir().expect("a directory"));
    obtain(&ca, storage.path()).await;
    let acme = builder(&ca, storage.path())
        .certificate(names)
        .build()
        .expect("it is complete");
    let _site = Site::start(&ca, &acme).await;
    let root = ca.root().await;
    assert!(connect(&ca, "example.org", root.clone()).await.is_ok());
    assert!(connect(&ca, "www.example.org", root.clone()).await.is_err());
    let mut running = Running::start(acme);
    let covers = |names: &[String]| names.contains(&"www.example.org".to_owned());
    running
        .until(|status| {
            let certificate = status.groups[0].certificate.as_ref();
            certificate.is_some_and(|certificate| covers(&certificate.names))
        })
        .await;
    assert!(connect(&ca, "example.org", root.clone()).await.is_ok());
    assert!(connect(&ca, "www.example.org", root).await.is_ok());
}

#[tokio::test]
async fn names_in_another_order_are_no_reason_to_order() {
    let (ca, storage) = (Ca::start(), tempfile::tempdir().expect("a directory"));
    let build = |names: [&str; 2]| {
        let acme = builder(&ca, storage.path()).certificate(names).build();
        acme.expect("it is complete")
    };
    let acme = build(["example.org", "www.example.org"]);
    let site = Site::start(&ca, &acme).await;
    let mut running = Running::start(acme);
    let obtained = running.certificate().await;
    running.stop().await;
    site.stop().await;
    let acme = build(["www.example.org", "example.org"]);
    let _site = Site::start(&ca, &acme).await;
    let served = connect(&ca, "example.org", ca.root().await).await;
    assert_eq!(
        serial(&shown(&served.expect("it is served"))),
        obtained.serial
    );
    let mut running = Running::start(acme);
    let is_waiting = |state: &State| matches!(state, State::Waiting { .. });
    running
        .until(|status| is_waiting(&status.groups[0].state))
        .await;
    assert_eq!(ca.orders(), 1);
}
