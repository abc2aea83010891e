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

/// Writes an application that says nothing but hello.
fn write_app(directory: &TempDir, name: &str) -> String {
    let app = directory.path().join(name);
    let code = "use strict; use warnings; sub { [200, [], ['hello']] };";
    fs::write(&app, code).unwrap();
    app.display().to_string()
}

/// Asks for new workers by a bearer's value, and returns the response.
fn restart(admin: SocketAddr, value: &str) -> String {
    let fields = format!("Authorization: Bearer {TOKEN}\r\n{FORM}");
    post(admin, "restart-workers", &fields, value)
}

/// Returns the generation of each Perl application, in their order.
fn generations(operated: &Operated) -> Vec<u64> {
    let status = operated.ask("/greenroom/status").body;
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    let applications = status["psgi"].as_array().unwrap().iter();
    applications
        .map(|each| each["generation"].as_u64().unwrap())
        .collect()
}

#[test]
fn the_workers_of_the_only_perl_application_need_no_name() {
    let (directory, file) = token_file();
    let app = write_app(&directory, "app.psgi");
    let operated = Operated::start(&["--admin-token-file", &file, "--workers", "1", &app]);
    let response = restart(operated.admin(), "");
    assert!(response.contains("generation 2 serve"), "{response}");
    assert_eq!(generations(&operated), [2]);
    let page = operated.ask("/").body;
    assert!(
        page.contains(">Restart the Perl workers</button>"),
        "{page}"
    );
}

#[test]
fn the_workers_of_the_perl_application_that_is_named_are_restarted() {
    let (directory, file) = token_file();
    let (app, blog) = (
        write_app(&directory, "app.psgi"),
        write_app(&directory, "blog.psgi"),
    );
    let mount = format!("/blog={blog} workers=1");
    let flags = ["--admin-token-file", &file, "--workers", "1", "--mount"];
    let operated = Operated::start(&[&flags[..], &[&mount, &app]].concat());
    let response = restart(operated.admin(), "value=/blog");
    assert!(
        response.contains("/blog: the workers of generation 2 serve"),
        "{response}"
    );
    assert_eq!(generations(&operated), [1, 2]);
    let response = restart(operated.admin(), &format!("value={app}"));
    assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
    assert_eq!(generations(&operated), [2, 2]);
    let page = operated.ask("/").body;
    for name in ["/blog", &app] {
        let button = format!(">Restart the Perl workers: {name}</button>");
        assert!(page.contains(&button), "{button}\n{page}");
    }
    for (value, said) in [
        ("", "the value is to be one Perl application"),
        ("value=/shop", "there is no Perl application `/shop`"),
    ] {
        let response = restart(operated.admin(), value);
        assert!(response.starts_with("HTTP/1.1 400 "), "{response}");
        let all = format!("restart-workers: {said}; there are {app}, /blog\n");
        assert!(response.ends_with(&all), "{response}");
    }
    assert_eq!(generations(&operated), [2, 2]);
}

#[test]
fn the_perl_applications_of_sites_are_named_by_their_routes_as_they_are_now() {
    let (directory, token) = token_file();
    write_app(&directory, "shop.psgi");
    write_app(&directory, "wiki.psgi");
    let file = directory.path().join("greenroom.toml");
    let site = |host: &str, app: &str| {
        format!(
            "[[site]]\nhosts = [\"{host}\"]\n[[site.route]]\npath = \"/\"\n\
             psgi = {{ app = \"{app}.psgi\", workers = 1 }}\n"
        )
    };
    let server = format!(
        "[server]\nlisten = \"127.0.0.1:0\"\nstatus_listen = \"127.0.0.1:0\"\n\
         admin_token_file = \"{token}\"\n"
    );
    fs::write(&file, format!("{server}{}", site("shop.test", "shop"))).unwrap();
    let operated = Operated::of_file(&file.display().to_string());
    let response = restart(operated.admin(), "");
    assert!(
        response.contains("shop.test/: the workers of generation 2 serve"),
        "{response}"
    );
    let both = [site("shop.test", "shop"), site("wiki.test", "wiki")].concat();
    fs::write(&file, format!("{server}{both}")).unwrap();
    operated.server.signal(rustix::process::Signal::HUP);
    operated
        .server
        .await_log("the sites of the file are in force");
    let response = restart(operated.admin(), "value=wiki.test/");
    assert!(
        response.contains("wiki.test/: the workers of generation 2 serve"),
        "{response}"
    );
    let response = restart(operated.admin(), "value=shop");
    assert!(
        response.contains("`shop`; there are shop.test/, wiki.test/"),
        "{response}"
    );
}
