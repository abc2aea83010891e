//! The directory of certificates as root finds it, who serves as another user.

use std::fs::{self, Permissions, set_permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rustix::process::geteuid;
use tempfile::TempDir;

use crate::pebble::Authority;
use crate::program::{Running, command};
use crate::versions::Versions;

const NOBODY: u32 = 65_534;
const AS_NOBODY: [&str; 2] = ["--user=nobody", "--group=65534"];

/// Returns `true`, and says so, if a test needs rights that this process has not got.
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn is_skipped() -> bool {
    let is_skipped = !geteuid().is_root();
    if is_skipped {
        eprintln!("SKIPPED: only root can become another user");
    }
    is_skipped
}

/// A directory that all may pass.
fn open_directory() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
    directory
}

/// Returns a server as nobody that keeps certificates there, for an authority that is not there.
fn serve(storage: &Path) -> Command {
    let mut serve = command(&["serve", "--listen=127.0.0.1:0", "--domain=www.example.org"]);
    let flags = ["--acme-directory=https://127.0.0.1:1/dir", "--acme-storage"];
    serve.args(AS_NOBODY).args(flags).arg(storage);
    serve
}

/// Returns the message of a server that does not start.
#[track_caller]
fn refused(storage: &Path) -> String {
    let Output { status, stderr, .. } = serve(storage).output().unwrap();
    let message = String::from_utf8(stderr).unwrap();
    assert_eq!(status.code(), Some(2), "{message}");
    message
}

fn owner(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().uid()
}

/// Makes a directory of certificates that is nobody's, and what is in it, and returns its path.
fn of_nobody(directory: &TempDir) -> PathBuf {
    let storage = directory.path().join("storage");
    fs::create_dir(&storage).unwrap();
    chown(&storage, Some(NOBODY), Some(NOBODY)).unwrap();
    storage
}

#[test]
fn a_directory_far_below_is_made_so_that_its_user_gets_there() {
    if is_skipped() {
        return;
    }
    let authority = Authority::start();
    authority.write_issued_root();
    let directory = open_directory();
    // The program must be one that another user can start.
    let program = directory.path().join("greenroom");
    fs::copy(env!("CARGO_BIN_EXE_greenroom"), &program).unwrap();
    let storage = directory.path().join("a/b");
    let mut called = Command::new(&program);
    // What its next version reads must be the user's to read.
    set_permissions(authority.path(""), Permissions::from_mode(0o755)).unwrap();
    let flags = authority.flags_for(&storage);
    called.arg("serve").args(flags).args(AS_NOBODY).env_clear();
    let mut versions = Versions::of(Running::start(called.current_dir("/")));
    versions.first.wait_for_log("a certificate is obtained");
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!(mode(&storage), 0o700);
    assert_eq!(mode(&directory.path().join("a")), 0o755);
    assert_eq!(
        (owner(&storage), owner(&storage.join("lock"))),
        (NOBODY, NOBODY)
    );
    assert_eq!(owner(&directory.path().join("a")), 0);
    // The next version, which never was root, has it as well.
    let before = versions.pid;
    versions.upgrade();
    versions.gone(before);
    assert_eq!(authority.hello(), "Hello, world!\n");
}

#[test]
fn a_directory_that_its_user_cannot_reach_is_told_at_once() {
    if is_skipped() {
        return;
    }
    let directory = open_directory();
    let closed = directory.path().join("closed");
    fs::create_dir(&closed).unwrap();
    set_permissions(&closed, Permissions::from_mode(0o700)).unwrap();
    let message = refused(&closed.join("storage"));
    let storage = format!("--acme-storage {}/storage", closed.display());
    let place = format!("{}: that user may not pass", closed.display());
    for said in [&*storage, &*place, "Permission denied"] {
        assert!(message.contains(said), "{said}: {message}");
    }
}

#[test]
fn nothing_is_given_away_that_a_link_leads_to() {
    if is_skipped() {
        return;
    }
    let directory = open_directory();
    let storage = of_nobody(&directory);
    let (file, folder) = (
        directory.path().join("file"),
        directory.path().join("folder"),
    );
    fs::write(&file, "root's").unwrap();
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("file"), "root's").unwrap();
    symlink(&file, storage.join("to-file")).unwrap();
    symlink(&folder, storage.join("to-folder")).unwrap();
    fs::hard_link(&file, storage.join("other-name")).unwrap();
    fs::write(storage.join("own"), "").unwrap();
    assert!(
        Command::new("mkfifo")
            .arg(storage.join("fifo"))
            .status()
            .unwrap()
            .success()
    );
    let _server = Running::start(&mut serve(&storage));
    for path in [&file, &folder, &folder.join("file"), &storage.join("fifo")] {
        assert_eq!(owner(path), 0, "{}", path.display());
    }
    assert_eq!(owner(&storage.join("own")), NOBODY);
}

#[test]
fn a_lock_that_is_a_link_or_a_fifo_is_refused() {
    if is_skipped() {
        return;
    }
    let directory = open_directory();
    let (storage, file) = (of_nobody(&directory), directory.path().join("file"));
    let lock = storage.join("lock");
    fs::write(&file, "root's").unwrap();
    symlink(&file, &lock).unwrap();
    let message = refused(&storage);
    let said = format!("{}: it is a link", lock.display());
    assert!(message.contains(&said), "{message}");
    fs::remove_file(&lock).unwrap();
    assert!(
        Command::new("mkfifo")
            .arg(&lock)
            .status()
            .unwrap()
            .success()
    );
    let message = refused(&storage);
    let said = format!("{}: it is no regular file", lock.display());
    assert!(message.contains(&said), "{message}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "root's");
    assert_eq!(owner(&file), 0);
}

#[test]
fn a_link_of_the_user_s_in_the_place_of_the_directory_is_refused() {
    if is_skipped() {
        return;
    }
    let directory = open_directory();
    let (storage, target) = (
        directory.path().join("storage"),
        directory.path().join("target"),
    );
    fs::create_dir(&target).unwrap();
    symlink(&target, &storage).unwrap();
    std::os::unix::fs::lchown(&storage, Some(NOBODY), Some(NOBODY)).unwrap();
    for ending in ["", "/", "/."] {
        let named = PathBuf::from(format!("{}{ending}", storage.display()));
        let message = refused(&named);
        assert!(message.contains("a link of another user's"), "{message}");
        assert_eq!(owner(&target), 0);
        assert_eq!(fs::read_dir(&target).unwrap().count(), 0);
    }
    // Root's own is followed.
    std::os::unix::fs::lchown(&storage, Some(0), Some(0)).unwrap();
    let _server = Running::start(&mut serve(&storage));
    assert_eq!(owner(&target), NOBODY);
}
