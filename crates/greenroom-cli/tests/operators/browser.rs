//! The page in Chromium and Firefox. Their screenshots are left in `target/operators-page`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::outside::http::{self, assert_hello};
use crate::outside::tools;
use crate::overload::{Flood, SHORT_OF_THREADS};
use crate::upgraded::Upgraded;
use crate::{Operated, PATIENCE};

/// The time that a browser gets for all that it is asked; only a failing test takes so long.
const DEADLINE: Duration = Duration::from_mins(8);

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

fn shots() -> PathBuf {
    let shots = tools::path("../operators-page");
    fs::create_dir_all(&shots).unwrap();
    shots.canonicalize().unwrap()
}

fn module(path: &str) -> PathBuf {
    tools::installed(&format!("node/node_modules/{path}"))
        .canonicalize()
        .unwrap()
}

fn program(name: &'static str) -> PathBuf {
    Path::new("/usr/bin").join(tools::system(name))
}

/// Returns a command that has `script` drive Chromium.
fn chromium(script: &str) -> Command {
    let mut client = tools::bounded(tools::system("node"), DEADLINE);
    client
        .arg(tools::script(script))
        .arg(module("playwright-core/index.mjs"))
        .arg(module("axe-core/axe.min.js"))
        .arg(program("chromium"))
        .arg(shots());
    client
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
    let (token, app) = (token.display().to_string(), app.display().to_string());
    let token = ["--admin-token-file", &token];
    let demo = Operated::start(&[SHORT_OF_THREADS, &token].concat());
    use_it(&demo);
    let mount = format!("/blog={app} workers=1");
    let perl =
        Operated::start(&[&token[..], &["--workers", "2", "--mount", &mount, &app]].concat());
    let upgraded = Upgraded::start();
    let mut client = chromium("operators/page.mjs");
    client
        .arg(format!("http://{}", demo.server.address()))
        .arg(format!("http://{}", demo.admin()))
        .arg(format!("http://{}", perl.admin()))
        .arg(format!("http://{}", upgraded.admin));
    tools::run(&mut client).expect_success("Chromium");
}

#[test]
fn chromium_shows_it_while_the_server_is_flooded() {
    let demo = Operated::start(SHORT_OF_THREADS);
    let flood = Flood::begin(&demo);
    let mut client = chromium("operators/flooded.mjs");
    client
        .arg(format!("http://{}", demo.server.address()))
        .arg(format!("http://{}", demo.admin()));
    tools::run(&mut client).expect_success("Chromium");
    drop(flood);
}

/// Has Firefox look at the page. Its screenshots' names begin with `name`.
fn show_in_firefox(admin: &str, application: &str, name: &str) {
    // For its profile and caches, which are removed whatever happens.
    let home = tempfile::tempdir().unwrap();
    let mut client = tools::bounded(tools::system("node"), DEADLINE);
    client
        .arg(tools::script("operators/firefox.mjs"))
        .arg(format!("http://{admin}"))
        .arg(format!("http://{application}"))
        .arg(module("puppeteer-core/lib/esm/puppeteer/puppeteer-core.js"))
        .arg(module("axe-core/axe.min.js"))
        .arg(program("firefox-esr"))
        .arg(shots())
        .arg(name)
        .env("HOME", home.path())
        .env("TMPDIR", home.path());
    tools::run(&mut client).expect_success("Firefox");
}

#[test]
fn firefox_shows_it_to_everybody() {
    let upgraded = Upgraded::start();
    show_in_firefox(&upgraded.admin, upgraded.address(), "firefox");
}

#[test]
#[ignore = "takes minutes: make firefox-flood"]
fn firefox_shows_it_while_the_server_is_flooded() {
    let demo = Operated::start(SHORT_OF_THREADS);
    let flood = Flood::begin(&demo);
    let (admin, application) = (demo.admin().to_string(), demo.server.address().to_string());
    show_in_firefox(&admin, &application, "firefox-flooded");
    drop(flood);
}
