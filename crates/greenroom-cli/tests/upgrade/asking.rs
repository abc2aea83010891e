//! `greenroom upgrade`: what it asks, of whom, and what it says.

use std::fs;

use crate::program::output;
use crate::versions::{Versions, lives};

/// Returns the message with which nothing is asked of anybody.
fn refused(arguments: &[&str]) -> String {
    let output = output(&[&["upgrade"], arguments].concat());
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
    assert!(output.stdout.is_empty());
    message
}

#[test]
fn who_is_no_server_is_not_signalled() {
    let mut sleeping = std::process::Command::new("sleep")
        .arg("600")
        .spawn()
        .unwrap();
    let message = refused(&[&sleeping.id().to_string()]);
    assert!(
        message.contains("begins no upgrades at SIGUSR2"),
        "{message}"
    );
    assert!(lives(sleeping.id()));
    sleeping.kill().unwrap();
    sleeping.wait().unwrap();
}

#[test]
fn what_makes_no_sense_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pid");
    let path = file.to_str().unwrap();
    fs::write(&file, "-1\n").unwrap();
    let cases: [(&[&str], &str); 8] = [
        (&[], "<PID>"),
        (&["x"], "x"),
        (&["0"], "not the number of a process"),
        (&["--", "-1"], "not the number of a process"),
        (&["2147483647"], "there is no process 2147483647"),
        (&["1", "--pid-file", path], "cannot be used with"),
        (&["--pid-file", path], "`-1` is not the number of a process"),
        (&["--pid-file", "/nowhere/pid"], "/nowhere/pid"),
    ];
    for (arguments, said) in cases {
        let message = refused(arguments);
        assert!(message.contains(said), "{arguments:?}: {message}");
    }
    let message = refused(&["1", "--timeout", "soon"]);
    assert!(message.contains("--timeout"), "{message}");
}

#[test]
fn one_that_is_not_patient_learns_that_the_log_tells() {
    let versions = Versions::serve(&["--upgrade-timeout", "2s"]);
    versions.replace_by("exec sleep 600");
    let pid = versions.pid.to_string();
    let asked = output(&["upgrade", &pid, "--timeout", "250ms"]);
    let message = String::from_utf8(asked.stderr).unwrap();
    assert_eq!(asked.status.code(), Some(1), "{message}");
    assert!(message.contains("within 250ms"), "{message}");
    // Another one meanwhile is refused.
    let message = versions.fails();
    assert!(message.contains("under way"), "{message}");
    versions.first.wait_for_log("(upgrade_timeout)");
}
