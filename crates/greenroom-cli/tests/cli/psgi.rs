//! `greenroom serve APP.psgi`: its flags, its start, its signals; and its status for operators.

use std::fs;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::process::Command;

use rustix::process::Signal;
use tempfile::TempDir;

use crate::program::{Running, command, read_to_end};
use crate::{error_of, help};

#[test]
fn help_of_serve_tells_of_psgi_applications() {
    let help = help(&["serve", "--help"]);
    for text in [
        "[FILE]",
        "PSGI application:",
        "--workers",
        "--worker-concurrency",
        "-I <DIR>",
        "-M <MODULE>",
        "-E, --env",
        "GREENROOM_MAX_RSS",
        "--mount",
        "--status-listen",
        "SIGHUP",
        "Type=notify",
    ] {
        assert!(help.contains(text), "{text}");
    }
    for hidden in ["--attach", "--daemonize"] {
        assert!(!help.contains(hidden), "{hidden}");
    }
}

#[test]
fn wrong_command_lines_are_refused_with_what_is_allowed() {
    let cases: [(&[&str], &str); 12] = [
        (&["serve", "--workers", "2"], "greenroom serve app.psgi"),
        (&["serve", "--workers", "0", "a.psgi"], "1 to 1024"),
        (&["serve", "--worker-concurrency", "0", "a.psgi"], "auto"),
        (&["serve", "--max-rss", "0", "a.psgi"], "1B or more"),
        (&["serve", "--max-requests", "0", "a.psgi"], "1 or more"),
        (&["serve", "--timeout", "60", "a.psgi"], "10s"),
        (&["serve", "--mount", "blog=a.psgi"], "/blog"),
        (&["serve", "--mount", "/a=b.psgi speed=1"], "workers=N"),
        (&["serve", "--upstream", "http://[::1]/", "a.psgi"], "demo"),
        (&["serve", "-o", "example.org", "a.psgi"], "127.0.0.1"),
        (&["serve", "-l", ":80", "-p", "80", "a.psgi"], "give either"),
        (&["serve", "-D", "a.psgi"], "systemd"),
    ];
    for (arguments, allowed) in cases {
        let message = error_of(arguments);
        assert!(message.contains(allowed), "{arguments:?}: {message}");
    }
}

#[test]
fn an_application_that_is_not_there_is_named() {
    let message = error_of(&["serve", "-p", "0", "nowhere/missing.psgi"]);
    assert!(message.contains("nowhere/missing.psgi"), "{message}");
    let second = "/second=nowhere/second.psgi";
    let message = error_of(&["serve", "-p", "0", "--mount", second]);
    assert!(message.contains("nowhere/second.psgi"), "{message}");
}

#[test]
fn a_taken_address_is_told_before_the_application_is_looked_at() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let lines: [&[&str]; 2] = [
        &["serve", "missing.psgi", "--listen", &address],
        &[
            "serve",
            "missing.psgi",
            "-p",
            "0",
            "--status-listen",
            &address,
        ],
    ];
    for arguments in lines {
        let message = error_of(arguments);
        assert!(message.contains(&address), "{message}");
        assert!(!message.contains("missing.psgi"), "{message}");
    }
}

/// Returns an application of this source, in a directory of its own, and the command that serves
/// it.
fn application(source: &str) -> (TempDir, Command) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("app.psgi");
    fs::write(&file, source).unwrap();
    let mut serve = command(&["serve", "-p", "0"]);
    serve.arg(file);
    // The directories of Perl; the rest of the environment stays away.
    serve.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    (directory, serve)
}

/// Returns the message with which an application of this source is rejected.
fn refused(source: &str, flags: &[&str]) -> String {
    let (_directory, mut serve) = application(source);
    let output = serve.args(flags).output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(!message.contains("listening"), "{message}");
    message
}

#[test]
fn what_perl_says_of_the_application_is_the_message() {
    const GOOD: &str = "use strict; use warnings; sub { [200, [], []] };";
    let cases: [(&str, &[&str], &str); 5] = [
        ("my $x = ;", &[], "syntax error"),
        ("use strict; 1;", &[], "code reference"),
        (GOOD, &["-M", "No::Such::Module"], "No/Such/Module.pm"),
        (GOOD, &["--perl", "/nowhere/perl"], "/nowhere/perl"),
        (GOOD, &["--mount", "/b=missing.psgi"], "missing.psgi"),
    ];
    for (source, flags, said) in cases {
        let message = refused(source, flags);
        assert!(message.contains(said), "{flags:?}: {message}");
    }
}

#[test]
fn hangup_reloads_the_application() {
    let source = "use strict; use warnings; sub { [200, [], ['hello']] };";
    let (_directory, mut serve) = application(source);
    let mut server = Running::start(&mut serve);
    server.signal(Signal::HUP);
    server.wait_for_log("reloading");
    server.signal(Signal::TERM);
    assert_eq!(server.wait().code(), Some(0));
}

#[test]
fn signals_are_heeded_while_the_application_loads() {
    let source = "use strict; use warnings; warn 'loading'; sleep 3600; sub { [200, [], []] };";
    let (_directory, mut serve) = application(source);
    let mut server = Running::spawn(&mut serve);
    server.wait_for_log("loading");
    server.signal(Signal::HUP);
    server.signal(Signal::TERM);
    assert_eq!(server.wait().code(), Some(0));
    let log = server.rest_of_log();
    assert!(
        !log.iter().any(|line| line.contains("listening")),
        "{log:#?}"
    );
}

#[test]
fn an_environment_for_applications_does_not_keep_the_demo_from_being_served() {
    let mut serve = command(&["serve", "-p", "0"]);
    let environment = [
        ("GREENROOM_WORKERS", "4"),
        ("GREENROOM_LISTEN", "127.0.0.3:0"),
        ("PLACK_ENV", "production"),
    ];
    let server = Running::start(serve.envs(environment));
    assert!(
        server.address.starts_with("127.0.0.1:"),
        "{}",
        server.address
    );
    assert!(server.get("/health").ends_with("ok\n"));
}

#[test]
fn operators_have_an_address_of_their_own() {
    let mut server = Running::start(&mut command(&[
        "serve",
        "-p",
        "0",
        "--status-listen",
        "127.0.0.1:0",
    ]));
    let line = server.wait_for_log("status at");
    let (_, address) = line.split_once("http://").unwrap();
    let ask = |path: &str| {
        let mut connection = TcpStream::connect(address.trim()).unwrap();
        let close = "Host: operators\r\nConnection: close";
        write!(connection, "GET {path} HTTP/1.1\r\n{close}\r\n\r\n").unwrap();
        read_to_end(connection)
    };
    let status = ask("/greenroom/status");
    assert!(status.contains("\"psgi\":[]"), "{status}");
    assert!(ask("/greenroom/metrics").contains("# TYPE "));
    assert!(ask("/hello").starts_with("HTTP/1.1 404 "));
    server.signal(Signal::TERM);
    assert_eq!(server.wait().code(), Some(0));
    assert!(TcpStream::connect(address.trim()).is_err());
}
