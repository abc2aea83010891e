//! The page in Chromium. Its screenshots are left in `target/operators-page`.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::outside::http::{self, assert_hello};
use crate::outside::tools;
use crate::{Operated, PATIENCE};

const DEADLINE: Duration = Duration::from_mins(4);

/// Gives the server something to show: short and long requests, some of them refused, and an
/// upstream that is not there.
fn use_it(operated: &Operated) {
    let address = operated.server.address();
    for _ in 0..100 {
        assert_hello(address);
    }
    let clients = (0..16).map(|_| {
        thread::spawn(move || {
            for _ in 0..10 {
                http::get(address, "/fib/30000", PATIENCE).unwrap();
            }
        })
    });
    for client in clients.collect::<Vec<_>>() {
        client.join().unwrap();
    }
}

#[test]
fn chromium_shows_it_to_everybody() {
    let directory = tempfile::tempdir().unwrap();
    let (token, app) = (
        directory.path().join("token"),
        directory.path().join("app.psgi"),
    );
    fs::write(&token, "an-operator's-token").unwrap();
    fs::write(
        &app,
        "use strict; use warnings; sub { [200, [], ['hello']] };",
    )
    .unwrap();
    let token = token.display().to_string();
    let flags = ["--stage-threads", "2", "--queue-wait-max", "20ms"];
    let demo = Operated::start(&[&flags[..], &["--admin-token-file", &token]].concat());
    use_it(&demo);
    let perl = Operated::start(&["--workers", "2", &app.display().to_string()]);
    let shots = tools::path("../operators-page");
    fs::create_dir_all(&shots).unwrap();
    let mut client = tools::bounded(tools::system("node"), DEADLINE);
    let module = |path: &str| tools::installed(path).canonicalize().unwrap();
    client
        .arg(tools::script("operators/page.mjs"))
        .arg(format!("http://{}", demo.admin()))
        .arg(format!("http://{}", perl.admin()))
        .arg(format!("http://{}", demo.server.address()))
        .arg(module("node/node_modules/playwright-core/index.mjs"))
        .arg(module("node/node_modules/axe-core/axe.min.js"))
        .arg(Path::new("/usr/bin").join(tools::system("chromium")))
        .arg(shots.canonicalize().unwrap());
    tools::run(&mut client).expect_success("Chromium");
}
