//! Actions of operators, by their token.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;

use tempfile::TempDir;

use crate::outside::wait;
use crate::{Operated, PATIENCE};

const TOKEN: &str = "an-operator's-token";

/// Returns a directory with the token in a file.
fn token_file() -> (TempDir, String) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("token");
    fs::write(&file, format!("{TOKEN}\n")).unwrap();
    let file = file.display().to_string();
    (directory, file)
}

/// Sends a `POST` with these header fields and this body, and returns the response.
fn post(admin: SocketAddr, action: &str, fields: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(admin).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let length = body.len();
    write!(
        stream,
        "POST /greenroom/actions/{action} HTTP/1.1\r\nHost: {admin}\r\nConnection: close\r\n\
         Content-Length: {length}\r\n{fields}\r\n{body}"
    )
    .unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}

const FORM: &str = "Content-Type: application/x-www-form-urlencoded\r\n";

#[test]
fn without_a_token_there_are_none() {
    let operated = Operated::start(&[]);
    assert!(!operated.ask("/").body.contains("<form"));
    let bearer = format!("Authorization: Bearer {TOKEN}\r\n");
    let response = post(operated.admin(), "drain", &bearer, "");
    assert!(response.starts_with("HTTP/1.1 404 "), "{response}");
}

#[test]
fn a_token_that_is_short_or_has_no_admin_server_is_refused() {
    let (directory, _) = token_file();
    let short = directory.path().join("short");
    fs::write(&short, "short").unwrap();
    let short = short.display().to_string();
    for (flags, said) in [
        (
            [
                "--status-listen",
                "127.0.0.1:0",
                "--admin-token-file",
                &short,
            ],
            "16 to 1024",
        ),
        (
            ["--port", "0", "--admin-token-file", &short],
            "--status-listen",
        ),
    ] {
        let mut serve = Command::new(env!("CARGO_BIN_EXE_greenroom"));
        let output = serve.arg("serve").args(flags).env_clear().output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains(said), "{message}");
    }
}

#[test]
fn the_token_is_asked_for_and_forms_of_others_are_refused() {
    let (_directory, file) = token_file();
    let operated = Operated::start(&["--admin-token-file", &file]);
    let admin = operated.admin();
    let page = operated.ask("/").body;
    assert!(page.contains("<form") && !page.contains(TOKEN), "{page}");
    let own = format!("{FORM}Origin: http://{admin}\r\n");
    let others = format!("{FORM}Origin: http://example.org\r\n");
    let right = format!("token={TOKEN}");
    for (fields, body, status) in [
        ("", "", "403"),
        (&*others, &*right, "403"),
        (&*own, "token=a-wrong-token-of-this-length", "401"),
        ("Authorization: Bearer wrong\r\n", "", "401"),
    ] {
        let response = post(admin, "drain", fields, body);
        assert!(
            response.starts_with(&format!("HTTP/1.1 {status} ")),
            "{fields}{response}"
        );
    }
    let bearer = format!("Authorization: Bearer {TOKEN}\r\n");
    let response = post(admin, "dance", &bearer, "");
    assert!(
        response.starts_with("HTTP/1.1 404 ") && response.contains("drain"),
        "{response}"
    );
    assert!(operated.ask("/ready").body.starts_with("ready"));
}

#[test]
fn the_level_of_the_log_changes_by_a_form_and_the_server_drains_by_a_bearer() {
    let (_directory, file) = token_file();
    let operated = Operated::start(&["--admin-token-file", &file]);
    let admin = operated.admin();
    let own = format!("{FORM}Sec-Fetch-Site: same-origin\r\n");
    let level = |value: &str| {
        let body = format!("token={TOKEN}&value-log-level={value}");
        post(admin, "log-level", &own, &body)
    };
    for wrong in ["", "loud", "psgi=loud"] {
        let response = level(wrong);
        assert!(response.starts_with("HTTP/1.1 500 "), "{response}");
    }
    let response = level("debug");
    assert!(
        response.contains("the level of the log is debug"),
        "{response}"
    );
    // Short runs in a row, after which the route moves.
    for _ in 0..100 {
        crate::outside::http::assert_hello(operated.server.address());
    }
    operated.server.await_log("a route moves");
    let bearer = format!("Authorization: Bearer {TOKEN}\r\n");
    let response = post(admin, "drain", &bearer, "");
    assert!(response.contains("the server drains"), "{response}");
    let is_gone = || TcpStream::connect(operated.server.address()).is_err();
    wait::until("the drained server", PATIENCE, is_gone, |is_gone| *is_gone);
}

#[test]
fn log_files_are_reopened() {
    let (directory, file) = token_file();
    let (log, moved) = (
        directory.path().join("access"),
        directory.path().join("moved"),
    );
    let path = log.display().to_string();
    let operated = Operated::start(&["--admin-token-file", &file, "--access-log", &path]);
    fs::rename(&log, moved).unwrap();
    let bearer = format!("Authorization: Bearer {TOKEN}\r\n");
    let response = post(operated.admin(), "reopen-logs", &bearer, "");
    assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
    crate::outside::http::assert_hello(operated.server.address());
    let lines = || fs::read_to_string(&log).unwrap_or_default();
    wait::until("the new file", PATIENCE, lines, |lines| {
        lines.contains("/hello")
    });
}

#[test]
fn the_workers_of_a_perl_application_are_restarted() {
    let (directory, file) = token_file();
    let app = directory.path().join("app.psgi");
    fs::write(
        &app,
        "use strict; use warnings; sub { [200, [], ['hello']] };",
    )
    .unwrap();
    let app = app.display().to_string();
    let operated = Operated::start(&["--admin-token-file", &file, "--workers", "1", &app]);
    let bearer = format!("Authorization: Bearer {TOKEN}\r\n");
    let response = post(operated.admin(), "restart-workers", &bearer, "");
    assert!(response.contains("generation [2]"), "{response}");
    let shown: serde_json::Value =
        serde_json::from_str(&operated.ask("/greenroom/status").body).unwrap();
    assert_eq!(shown["psgi"][0]["generation"], 2);
}
