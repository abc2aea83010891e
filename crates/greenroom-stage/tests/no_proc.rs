//! A server that cannot read `/proc`, as in a chroot: in a mount namespace of its own, which takes
//! root.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::print_stderr, reason = "a test that is skipped says so")]

use std::env;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Arc, Barrier};

use axum::Router;
use axum::routing::get;
use futures_util::future::join_all;
use greenroom_stage::Placement;
use rig::{get as fetch, patient, serve, within};

#[path = "serve/rig.rs"]
#[allow(dead_code, reason = "shared with tests that need more of it")]
mod rig;

/// Set in the environment when the test runs itself again.
const WITHOUT_PROC: &str = "GREENROOM_TEST_WITHOUT_PROC";
const WARNING: &str = "/proc cannot be read";

/// Runs one test of this program with an empty `/proc`.
fn run_without_proc(test: &str) -> Output {
    let program = env::current_exe().unwrap();
    Command::new("unshare")
        .args(["--mount", "sh", "-c"])
        .arg("mount -t tmpfs none /proc && exec \"$0\" --exact \"$1\" --nocapture")
        .arg(program)
        .arg(test)
        .env(WITHOUT_PROC, "1")
        .output()
        .unwrap()
}

fn can_unshare() -> bool {
    let tried = Command::new("unshare")
        .args(["--mount", "mount", "-t", "tmpfs", "none", "/proc"])
        .output();
    tried.is_ok_and(|tried| tried.status.success())
}

#[test]
fn blocking_handlers_run_at_once_without_proc_which_is_warned_of_once() {
    if !can_unshare() {
        eprintln!("SKIPPED: a mount namespace takes root and the program unshare");
        return;
    }
    let output = run_without_proc("inside_where_proc_is_empty");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    assert_eq!(said.matches("passed through").count(), 1, "{said}");
    assert_eq!(said.matches(WARNING).count(), 1, "{said}");
}

/// Runs only as the child of the test above. The handlers wait for each other, so they end only if
/// the controller adds threads for all of them.
#[tokio::test]
async fn inside_where_proc_is_empty() {
    if env::var_os(WITHOUT_PROC).is_none() {
        return;
    }
    assert!(!Path::new("/proc/self").exists());
    tracing_subscriber::fmt().with_ansi(false).init();
    within(async {
        let barrier = Arc::new(Barrier::new(100));
        let block = move || async move {
            barrier.wait();
            "through"
        };
        let stage = patient().threads(1..=2).build().unwrap();
        let app = Router::new().route("/no-proc", get(block));
        let address = serve(app.layer(Placement::auto_on(&stage))).await;
        let calls = (0..100).map(|_| fetch(address, "/no-proc"));
        let responses = join_all(calls).await;
        assert!(responses.iter().all(|response| response.status == 200));
    })
    .await;
    tracing::info!("passed through");
}
