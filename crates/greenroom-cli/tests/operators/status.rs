//! `greenroom status`.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Command, Output, Stdio};

use crate::Operated;
use crate::authority::Authority;
use crate::outside::http::assert_hello;
use crate::outside::server::Server;

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_greenroom"));
    command.arg("status").args(arguments).env_clear();
    command
}

fn status(arguments: &[&str]) -> Output {
    command(arguments).output().expect("the program starts")
}

/// Returns the message of a call that ends with this status.
fn fault(arguments: &[&str], code: i32) -> String {
    let output = status(arguments);
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {message}");
    assert_eq!(output.stdout, b"", "{arguments:?}");
    message
}

#[test]
fn it_prints_what_the_page_shows() {
    let operated = Operated::start(&[]);
    assert_hello(operated.server.address());
    let admin = operated.admin().to_string();
    for address in [admin.clone(), format!("http://{admin}/greenroom/status")] {
        let output = status(&[&address]);
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        for part in [
            ": ready, up for",
            "Nothing needs attention.",
            "The last 5 minutes",
            "loop-0",
            "GET /hello",
            "of 64 short runs",
            "Nobody has been refused.",
            "No Perl application is served.",
            "it speaks no TLS",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
    }
}

#[test]
fn certificates_are_shown_with_their_names_and_their_end() {
    let authority = Authority::new();
    authority.issue("server", "shop.test");
    let flags = authority.flags("server");
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let operated = Operated::start(&flags);
    let output = status(&[&operated.admin().to_string(), "--json"]);
    let shown: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let certificate = &shown["certificates"][0];
    assert_eq!(certificate["names"], serde_json::json!(["shop.test"]));
    assert!(
        certificate["expires_unix_seconds"]
            .as_i64()
            .is_some_and(|end| end > 0)
    );
    let page = operated.ask("/").body;
    assert!(
        page.contains("shop.test") && page.contains("Ends in"),
        "{page}"
    );
}

#[test]
fn scripts_get_json() {
    let operated = Operated::start(&["--loops", "2"]);
    let output = status(&[&operated.admin().to_string(), "--json"]);
    let shown: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(shown["loops"].as_array().unwrap().len(), 2);
    assert_eq!(shown["not_ready"], serde_json::json!([]));
}

#[test]
fn a_unix_socket_is_asked_too() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("admin.sock");
    let address = format!("unix:{}", socket.display());
    let flags = ["--status-listen", &address];
    let server = Server::with_flags(&flags);
    server.await_log("status at");
    let output = status(&[&address]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains(": ready"), "{output:?}");
}

#[test]
fn a_watch_goes_on_while_the_server_does_not_respond() {
    let operated = Operated::start(&[]);
    let admin = operated.admin().to_string();
    let mut watching = command(&[&admin, "--watch", "10ms"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(watching.stdout.take().unwrap()).lines();
    let seen = lines.filter(|line| line.as_ref().unwrap().starts_with("greenroom "));
    assert_eq!(seen.take(3).count(), 3);
    drop(operated);
    let mut faults = BufReader::new(watching.stderr.take().unwrap()).lines();
    let gone = faults.find(|line| line.as_ref().unwrap().contains("nothing listens at"));
    let ended = watching.try_wait().unwrap();
    watching.kill().unwrap();
    watching.wait().unwrap();
    assert!(gone.is_some() && ended.is_none(), "{ended:?}");
}

#[test]
fn what_is_no_admin_server_is_named() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let message = fault(&[&address], 1);
    assert!(message.contains("nothing listens at"), "{message}");
    assert!(message.contains("--status-listen"), "{message}");
    let message = fault(&["unix:/nowhere/admin.sock"], 1);
    assert!(message.contains("nothing listens at unix:"), "{message}");

    let server = Server::start();
    let message = fault(&[&server.address().to_string()], 1);
    assert!(
        message.contains("is no admin server") && message.contains("404"),
        "{message}"
    );

    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let message = fault(&[&address, "--timeout", "50ms"], 1);
    assert!(message.contains("did not respond within 50ms"), "{message}");

    let message = fault(&["https://127.0.0.1:1"], 2);
    assert!(message.contains("http://"), "{message}");
    let message = fault(&["5001"], 2);
    assert!(message.contains("[::1]:5001"), "{message}");
    let message = fault(&[], 2);
    assert!(message.contains("<ADDRESS>"), "{message}");
}
