//! Certificates over an upgrade, and while an application loads.

use std::fs;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};

use crate::pebble::{Authority, NAME};
use crate::program::{Running, command};
use crate::versions::{Versions, until};

/// Texts in the log of Pebble: of each order that it took (it rejects some requests, which are sent
/// again, on purpose), and of each authorization that failed.
const ORDER: &str = "Added order";
const FAILED: &str = "set INVALID";

/// Returns the number in the lock of the directory.
fn holder(authority: &Authority) -> String {
    fs::read_to_string(authority.path("storage/lock")).unwrap()
}

fn certificate(authority: &Authority) -> String {
    let directory = fs::read_dir(authority.path("storage")).unwrap();
    let mut paths = directory.map(|entry| entry.unwrap().path());
    let directory = paths.find(|path| path.is_dir()).unwrap();
    let file = directory.join(format!("certificates/{NAME}/certificate.pem"));
    fs::read_to_string(file).unwrap()
}

fn hangup(pid: u32) {
    let pid = Pid::from_raw(pid.cast_signed()).unwrap();
    kill_process(pid, Signal::HUP).unwrap();
}

#[test]
fn the_next_versions_serve_the_certificate_and_order_none() {
    let authority = Authority::start();
    authority.write_issued_root();
    let flags = authority.flags();
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let mut versions = Versions::start(tempfile::tempdir().unwrap(), &flags);
    versions.first.wait_for_log("a certificate is obtained");
    let obtained = certificate(&authority);
    for _ in 0..2 {
        let before = versions.pid;
        assert_eq!(holder(&authority), before.to_string());
        versions.upgrade();
        assert_eq!(authority.hello(), "Hello, world!\n");
        until("the lock is another's", || {
            holder(&authority) == versions.pid.to_string()
        });
        versions.gone(before);
        assert_eq!(authority.hello(), "Hello, world!\n");
    }
    assert_eq!(certificate(&authority), obtained);
    assert_eq!(authority.logged(ORDER), 1);
    // The directory is the last one's, and nobody else's.
    let second = command(&[&["serve"], &flags[..]].concat())
        .output()
        .unwrap();
    let message = String::from_utf8_lossy(&second.stderr);
    assert_eq!(second.status.code(), Some(2), "{message}");
    let said = format!("in use by process {}", versions.pid);
    assert!(message.contains(&said), "{message}");
}

#[test]
fn the_version_that_serves_obtains_whether_the_next_one_fails_or_not() {
    let authority = Authority::start();
    authority.write_issued_root();
    authority.write_site(&[NAME]);
    let file = authority.path("greenroom.toml").display().to_string();
    let mut versions = Versions::start(tempfile::tempdir().unwrap(), &[&file]);
    versions.first.wait_for_log("a certificate is obtained");
    let obtains = |versions: &Versions, host: &str| {
        authority.write_site(&[NAME, host]);
        hangup(versions.pid);
        let line = versions.first.wait_for_log("a certificate is obtained");
        assert!(line.contains(host), "{line}");
        assert_eq!(holder(&authority), versions.pid.to_string());
        assert_eq!(authority.hello(), "of a site\n");
    };
    // One that never loads, and one that fails when all has been left to it.
    versions.replace_by("exit 1");
    versions.fails();
    obtains(&versions, "one.example.net");
    versions.restore();
    authority.write_site_with("pid = \"nowhere/pid\"\n", &[NAME, "one.example.net"]);
    let message = versions.fails();
    assert!(message.contains("nowhere/pid"), "{message}");
    obtains(&versions, "two.example.net");
    versions.upgrade();
    obtains(&versions, "three.example.net");
    assert_eq!(authority.logged(ORDER), 4);
}

#[test]
fn under_start_server_the_next_process_waits_for_the_one_before() {
    let storage = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let start = || {
        let script = "exec 3<&0 </dev/null; export SERVER_STARTER_PORT=5000=3; exec \"$0\" \"$@\"";
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", script, env!("CARGO_BIN_EXE_greenroom"), "serve"]);
        // Nobody is there, which is nothing to this.
        shell.args(["--domain", NAME, "--listen-redirecting=127.0.0.1:0"]);
        shell.arg("--acme-directory=https://127.0.0.1:1/dir");
        shell.arg("--acme-storage").arg(storage.path()).env_clear();
        let socket = OwnedFd::from(listener.try_clone().unwrap());
        Running::start(shell.stdin(socket))
    };
    let mut first = start();
    first.wait_for_log("could not be obtained yet");
    let next = start();
    let line = next.wait_for_log("until the directory is free");
    let said = format!("in use by process {}", first.pid());
    assert!(line.contains(&said), "{line}");
    first.signal(Signal::TERM);
    assert_eq!(first.wait().code(), Some(0));
    next.wait_for_log("this process' from now on");
    next.wait_for_log("could not be obtained yet");
}

#[test]
fn nothing_is_ordered_before_the_application_is_there() {
    let authority = Authority::start();
    authority.write_issued_root();
    let app = authority.path("app.psgi");
    // It takes its time, in which an order that does not wait would be there by far. Each of the
    // workers loads it, and says how far the authority was then.
    let text = "sleep 2; system(qq(cp pebble.log meanwhile.$$)) == 0 or die; \
        sub { [200, [], ['loaded']] }";
    fs::write(&app, text).unwrap();
    let flags = authority.flags();
    let mut serve = command(&["serve"]);
    serve
        .args(&flags)
        .arg(&app)
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .current_dir(authority.path(""));
    let server = Running::spawn(&mut serve);
    server.wait_for_log("a certificate is obtained");
    assert_eq!(authority.hello(), "loaded");
    let files = fs::read_dir(authority.path("")).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let meanwhile: Vec<_> = names
        .filter(|name| name.starts_with("meanwhile."))
        .collect();
    assert!(!meanwhile.is_empty());
    for name in meanwhile {
        let log = fs::read_to_string(authority.path(&name)).unwrap();
        assert!(!log.contains(ORDER), "{log}");
    }
    assert_eq!(authority.logged(ORDER), 1);
    assert_eq!(authority.logged(FAILED), 0);
}
