//! HTTP/3 as clients see it that we did not write: aioquic, quic-go and Chromium.

#![cfg(feature = "http3")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "http3/client.rs"]
mod client;
mod outside;
#[allow(dead_code, reason = "these tests use a part of it")]
mod program;
#[path = "http3/upgrades.rs"]
mod upgrades;
#[allow(dead_code, reason = "these tests use a part of it")]
#[path = "upgrade/versions.rs"]
mod versions;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use outside::tools;
use program::{Running, command, output};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

const DEADLINE: Duration = Duration::from_mins(3);
const NAME: &str = "server.test";

/// A certificate and its key, in files.
struct Certified(TempDir);

impl Certified {
    fn for_name(name: &str) -> Self {
        let certified = Self(tempfile::tempdir().unwrap());
        let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
        fs::write(certified.path("cert.pem"), made.cert.pem()).unwrap();
        let key = made.signing_key.serialize_pem();
        fs::write(certified.path("key.pem"), key).unwrap();
        certified
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    /// Returns the flags for them.
    fn flags(&self) -> [String; 4] {
        let (certificate, key) = (self.path("cert.pem"), self.path("key.pem"));
        ["--cert".to_owned(), certificate, "--key".to_owned(), key]
    }

    /// Serves with HTTP/3, by one loop.
    fn serve(&self, more: &[&str]) -> Running {
        let tls = self.flags();
        let tls: Vec<&str> = tls.iter().map(String::as_str).collect();
        // No test here is of overload, and a machine that runs tests may be slow.
        let flags = ["--http3", "--loops", "1", "--loop-lag-max", "1m"];
        Running::serve(&[&flags[..], &tls, more].concat())
    }
}

#[test]
fn aioquic_is_served_and_finished_by_a_drain() {
    let certified = Certified::for_name(NAME);
    let (mut server, certificate) = (certified.serve(&[]), certified.path("cert.pem"));
    let (_, port) = server.address.split_once(':').unwrap();

    let mut curl = tools::bounded(tools::system("curl"), DEADLINE);
    curl.args(["--silent", "--insecure", "--include"])
        .arg(format!("https://{}/hello", server.address));
    let response = tools::run(&mut curl).expect_success("curl").stdout;
    let told = format!("alt-svc: h3=\":{port}\"; ma=86400\r\n");
    assert!(response.to_lowercase().contains(&told), "{response}");

    aioquic(port, &certificate, || server.signal(Signal::TERM));
    assert!(server.wait().success());
}

/// Has aioquic ask a server, which `end` has drain while a request is under way.
fn aioquic(port: &str, certificate: &str, mut end: impl FnMut()) {
    let python = tools::installed("python/bin/python");
    let mut client = tools::bounded(python, DEADLINE)
        .arg(tools::script("clients/aioquic_client.py"))
        .args([port, certificate, NAME])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let steps = BufReader::new(client.stdout.take().unwrap()).lines();
    let mut done = Vec::new();
    for step in steps {
        let step = step.unwrap();
        if step == "waiting" {
            end();
        }
        done.push(step);
    }
    let mut error = String::new();
    let mut stderr = client.stderr.take().unwrap();
    stderr.read_to_string(&mut error).unwrap();
    assert!(client.wait().unwrap().success(), "{done:?}\n{error}");
    let steps = [
        "hello", "upload", "bytes", "beside", "many", "limits", "waiting", "closed",
    ];
    assert_eq!(done, steps);
}

/// A process, which is killed if a test fails.
struct Next(Pid);

impl Drop for Next {
    fn drop(&mut self) {
        // It has ended if the test went well.
        let _killed = kill_process(self.0, Signal::KILL);
    }
}

#[test]
fn an_upgrade_finishes_connections_and_the_next_version_takes_new_ones() {
    let certified = Certified::for_name(NAME);
    let (mut server, certificate) = (certified.serve(&[]), certified.path("cert.pem"));
    let address = server.address.clone();
    let (_, port) = address.split_once(':').unwrap();
    let mut next = None;
    aioquic(port, &certificate, || {
        let asked = output(&["upgrade", &server.pid().to_string()]);
        let text = String::from_utf8(asked.stdout).unwrap();
        assert!(asked.status.success(), "{text}");
        let pid = text.split(' ').nth(1).unwrap().parse().unwrap();
        next = Some(Next(Pid::from_raw(pid).unwrap()));
    });
    assert!(server.wait().success());
    let next = next.expect("it was asked");
    aioquic(port, &certificate, || {
        kill_process(next.0, Signal::TERM).unwrap();
    });
}

/// Has quic-go ask a server, and returns what it prints.
fn quic_go(certified: &Certified, server: &Running, more: &[&str]) -> String {
    let program = certified.path("client");
    let mut build = tools::bounded(tools::system("go"), DEADLINE);
    build.current_dir(tools::script("clients/quic_go"));
    build.args(["build", "-o", &program, "."]);
    tools::run(&mut build).expect_success("go build");
    let (_, port) = server.address.split_once(':').unwrap();
    let mut client = tools::bounded(program, DEADLINE);
    client.env("NO_PROXY", "localhost");
    client.arg(format!("https://localhost:{port}"));
    client.arg(certified.path("cert.pem")).args(more);
    tools::run(&mut client).expect_success("quic-go").stdout
}

#[test]
fn quic_go_comes_by_alt_svc() {
    let certified = Certified::for_name("localhost");
    let server = certified.serve(&["--body-bytes-max", "6MB"]);
    let steps = quic_go(&certified, &server, &[]);
    let done: Vec<&str> = steps.lines().collect();
    assert_eq!(done, ["alternative", "simple", "long", "cancelled", "many"]);
}

#[test]
fn an_application_of_a_site_is_told_of_http_3() {
    let certified = Certified::for_name("localhost");
    let application = "sub {
        my ($env) = @_;
        [200, [], [map { \"$_=$env->{$_}\\n\" } qw(SERVER_PROTOCOL psgi.url_scheme PATH_INFO)]];
    };";
    fs::write(certified.path("app.psgi"), application).unwrap();
    let sites = r#"
[server]
cert = ["cert.pem"]
key = ["key.pem"]
http3 = true

[[site]]
[[site.route]]
path = "/"
psgi = { app = "app.psgi", workers = 1 }
"#;
    fs::write(certified.path("greenroom.toml"), sites).unwrap();
    let file = certified.path("greenroom.toml");
    let mut serve = command(&["serve", &file, "--listen", "127.0.0.1:0"]);
    // Perl is looked up.
    serve.env("PATH", std::env::var_os("PATH").unwrap());
    serve.current_dir(certified.0.path());
    let server = Running::start(&mut serve);
    let told = quic_go(&certified, &server, &["/path"]);
    let expected = "SERVER_PROTOCOL=HTTP/3.0\npsgi.url_scheme=https\nPATH_INFO=/path\n";
    assert_eq!(told, expected);
}

#[test]
fn chromium_loads_a_page() {
    let certified = Certified::for_name("localhost");
    let server = certified.serve(&["--body-bytes-max", "6MB"]);
    let (_, port) = server.address.split_once(':').unwrap();
    let playwright = tools::installed("node/node_modules/playwright-core/index.mjs");
    let mut client = tools::bounded(tools::system("node"), DEADLINE);
    client
        .arg(tools::script("clients/tls/browser_quic.mjs"))
        .arg(format!("https://localhost:{port}"))
        .arg(playwright.canonicalize().unwrap())
        .arg(Path::new("/usr/bin").join(tools::system("chromium")))
        .arg(certified.path("cert.pem"));
    tools::run(&mut client).expect_success("Chromium");
}

#[test]
fn http_3_without_tls_is_refused_at_the_start() {
    let ended = output(&["serve", "--http3"]);
    assert!(!ended.status.success());
    let error = String::from_utf8_lossy(&ended.stderr);
    assert!(error.contains("--http3 is for TLS"), "{error}");
}
