//! The suite over TLS.

use std::process::Command;

use crate::over::OVER_TLS;

/// Tests of what is below TLS, or of sockets that the test itself opens without it.
const WITHOUT_TLS: &[&str] = &["acceptors::", "listening::", "proxied::", "tls::"];

#[test]
fn the_suite_holds_over_tls() {
    let mut suite = Command::new(std::env::current_exe().unwrap());
    suite.env(OVER_TLS, "1").arg("--quiet");
    for name in WITHOUT_TLS {
        suite.args(["--skip", name]);
    }
    let ended = suite.output().unwrap();
    let output = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success(), "{output}");
    assert!(output.contains(" passed; 0 failed;"), "{output}");
}
