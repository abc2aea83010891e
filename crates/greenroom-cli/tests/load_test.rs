//! The load test for CI that users copy (`examples/load_test.sh`) says by its status whether the
//! bounds were kept.
#![allow(clippy::unwrap_used, reason = "tests fail by a panic")]

#[allow(dead_code, reason = "these tests use a part of it")]
mod program;

use std::path::Path;
use std::process::{Command, Output};

use program::Running;

fn run_with(p99: &str, server: &Running) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/load_test.sh");
    let output = Command::new(script)
        .arg(format!("http://{}/hello", server.address))
        .env("GREENROOM", env!("CARGO_BIN_EXE_greenroom"))
        .env("P99", p99)
        .env("RATE", "5")
        .env("SECONDS_LONG", "2")
        .output();
    output.expect("the script starts")
}

fn bounds_passed(output: &Output) -> usize {
    let log = String::from_utf8_lossy(&output.stderr);
    log.matches("--fail-if came true").count()
}

#[test]
fn load_test_fails_when_a_bound_is_passed() {
    let server = Running::serve(&[]);
    let kept = run_with("1m", &server);
    assert_eq!(bounds_passed(&kept), 0, "{kept:?}");
    // A busy machine may still have sent too slowly, which is status 3 too.
    assert!(matches!(kept.status.code(), Some(0 | 3)), "{kept:?}");
    // No response takes no time at all.
    let passed = run_with("1us", &server);
    assert_eq!(bounds_passed(&passed), 1, "{passed:?}");
    assert_eq!(passed.status.code(), Some(3), "{passed:?}");
}
