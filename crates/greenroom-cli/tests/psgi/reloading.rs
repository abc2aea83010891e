//! New code for old, while requests come.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rustix::process::Signal;

use crate::http;
use crate::site::{Site, until};

fn version(number: u32) -> String {
    format!("sub {{ [200, [], ['version {number}']] }};")
}

/// Sends requests without a pause while `change` runs; each response must be one of the two
/// versions, and the first after it the new one.
fn assert_seamless(site: &Site, change: impl FnOnce()) {
    let done = AtomicBool::new(false);
    let address = site.address();
    let responses = thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let mut responses = Vec::new();
            while !done.load(Ordering::Relaxed) {
                let response = http::get(address, "/");
                responses.push((response.status, response.text()));
            }
            responses
        });
        change();
        let now = site.get("/").text();
        done.store(true, Ordering::Relaxed);
        assert_eq!(now, "version 2");
        asking.join().unwrap()
    });
    assert!(!responses.is_empty());
    for (status, text) in responses {
        assert_eq!(status, 200, "{text}");
        assert!(["version 1", "version 2"].contains(&&*text), "{text}");
    }
}

#[test]
fn hangup_brings_the_new_code_and_fails_no_request() {
    for flags in [&["--workers", "2"][..], &["--preload"]] {
        let mut site = Site::serve(&version(1), flags);
        assert_seamless(&site, || {
            site.folder.write("app/app.psgi", &version(2));
            site.server.signal(Signal::HUP);
            site.server.wait_for_log("is loaded anew");
        });
        site.end(0);
    }
}

#[test]
fn a_change_of_the_file_is_enough_with_reload() {
    let mut site = Site::serve(&version(1), &["--reload"]);
    assert_seamless(&site, || {
        site.folder.write("app/app.psgi", &version(2));
        until("it is not reloaded", || site.get("/").text() == "version 2");
    });
    site.end(0);
}

#[test]
fn broken_code_is_said_and_the_old_serves_on() {
    let mut site = Site::serve(&version(1), &["--workers", "1"]);
    site.folder.write("app/app.psgi", "sub {\n[200, [], ;\n};");
    site.server.signal(Signal::HUP);
    site.server.wait_for_log("syntax error at");
    let status = site.await_status(|status| status["reloads_failed"] == 1);
    assert_eq!(status["generation"], 1, "{status:#}");
    assert_eq!(site.get("/").text(), "version 1");

    site.folder.write("app/app.psgi", &version(2));
    site.server.signal(Signal::HUP);
    site.server.wait_for_log("is loaded anew");
    assert_eq!(site.get("/").text(), "version 2");
    site.end(0);
}
