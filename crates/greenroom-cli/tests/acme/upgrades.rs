//! Certificates over an upgrade, and while an application loads.

use std::fs;

use crate::pebble::Authority;
use crate::program::{Running, command};

/// Texts in the log of Pebble: of each order, and of each authorization that failed.
const ORDER: &str = "/order-plz";
const FAILED: &str = "set INVALID";

#[test]
fn nothing_is_ordered_before_the_application_is_there() {
    let authority = Authority::start();
    authority.write_issued_root();
    let app = authority.path("app.psgi");
    // It takes its time, in which an order that does not wait would be there by far.
    let text = "sleep 2; system('cp', 'pebble.log', 'meanwhile.log') == 0 or die; \
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
    let meanwhile = fs::read_to_string(authority.path("meanwhile.log")).unwrap();
    assert!(!meanwhile.contains(ORDER), "{meanwhile}");
    assert_eq!(authority.asked_for(ORDER), 1);
    assert_eq!(authority.asked_for(FAILED), 0);
}
