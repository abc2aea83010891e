//! HTTP/3 as a client sees it that we did not write: aioquic.

#![cfg(feature = "http3")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod outside;
#[allow(dead_code, reason = "these tests use a part of it")]
mod program;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use std::time::Duration;

use outside::tools;
use program::{Running, output};
use rustix::process::Signal;

const DEADLINE: Duration = Duration::from_mins(3);
const NAME: &str = "server.test";

#[test]
fn aioquic_is_served_and_finished_by_a_drain() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let made = rcgen::generate_simple_self_signed([NAME.to_owned()]).unwrap();
    fs::write(path("cert.pem"), made.cert.pem()).unwrap();
    fs::write(path("key.pem"), made.signing_key.serialize_pem()).unwrap();
    let (certificate, key) = (path("cert.pem"), path("key.pem"));
    let flags = [
        "--http3",
        "--loops",
        "1",
        "--cert",
        &certificate,
        "--key",
        &key,
    ];
    let mut server = Running::serve(&flags);
    let (_, port) = server.address.split_once(':').unwrap();

    let mut curl = tools::bounded(tools::system("curl"), DEADLINE);
    curl.args(["--silent", "--insecure", "--include"])
        .arg(format!("https://{}/hello", server.address));
    let response = tools::run(&mut curl).expect_success("curl").stdout;
    let told = format!("alt-svc: h3=\":{port}\"; ma=86400\r\n");
    assert!(response.to_lowercase().contains(&told), "{response}");

    let python = tools::installed("python/bin/python");
    let mut client = tools::bounded(python, DEADLINE)
        .arg(tools::script("clients/aioquic_client.py"))
        .args([port, &certificate, NAME])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let steps = BufReader::new(client.stdout.take().unwrap()).lines();
    let mut done = Vec::new();
    for step in steps {
        let step = step.unwrap();
        if step == "waiting" {
            server.signal(Signal::TERM);
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
    assert!(server.wait().success());
}

#[test]
fn http_3_without_tls_is_refused_at_the_start() {
    let ended = output(&["serve", "--http3"]);
    assert!(!ended.status.success());
    let error = String::from_utf8_lossy(&ended.stderr);
    assert!(error.contains("--http3 is for TLS"), "{error}");
}
