//! The user under whom it serves, its process id, its files; and its messages on other servers'
//! flags.

use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, symlink};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Signal, geteuid};

use crate::error_of;
use crate::program::{Running, command, output, read_to_end};

/// The time-out of a line in a file; only a failing test waits so long.
const PATIENCE: Duration = Duration::from_secs(30);

/// A user and group without rights, whose numbers are the same on all distributions.
pub(crate) const NOBODY: u32 = 65_534;

/// Waits until the file has a line with this text, and returns it.
fn await_line(path: &Path, text: &str) -> String {
    let begin = Instant::now();
    loop {
        let lines = fs::read_to_string(path).unwrap_or_default();
        if let Some(line) = lines.lines().find(|line| line.contains(text)) {
            return line.to_owned();
        }
        assert!(begin.elapsed() < PATIENCE, "no `{text}` in: {lines}");
        thread::park_timeout(Duration::from_millis(5));
    }
}

#[test]
fn flags_of_other_servers_are_refused_with_what_to_use_instead() {
    let cases: [(&[&str], &str); 12] = [
        (&["--max-workers", "3"], "--workers NUMBER"),
        (&["--pre-fork=3"], "--workers NUMBER"),
        (&["--max-reqs-per-child", "9"], "--max-requests"),
        (&["--keepalive-timeout", "9"], "--keep-alive-timeout"),
        (&["--read-timeout", "9"], "--head-timeout"),
        (&["-S", "a.sock"], "--listen"),
        (&["-s", "Starman"], "not needed"),
        (&["-R", "lib"], "--reload"),
        (&["--path", "/a"], "--mount"),
        (&["--enable-ssl"], "--cert FILE"),
        (&["--net_server_log_level", "4"], "Net::Server"),
        (&["--no-default-middleware"], "-E development"),
    ];
    for (flags, said) in cases {
        let message = error_of(&[&["serve"], flags, &["app.psgi"]].concat());
        assert!(
            message.contains(flags[0].split('=').next().unwrap()),
            "{message}"
        );
        assert!(message.contains(said), "{flags:?}: {message}");
    }
}

#[test]
fn localhost_is_listened_on_in_both_families() {
    let server = Running::start(&mut command(&["serve", "-l", "localhost:0"]));
    assert!(
        server.address.starts_with("127.0.0.1:"),
        "{}",
        server.address
    );
    if TcpListener::bind("[::1]:0").is_ok() {
        server.wait_for_log("http://[::1]:");
    }
}

#[test]
fn the_pid_file_is_there_while_it_serves_unless_another_took_over() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("greenroom.pid");
    let flags = ["--pid", path.to_str().unwrap()];
    for taken_over in [false, true] {
        fs::write(&path, "1234567890\n").unwrap();
        let mut server = Running::serve(&flags);
        let number = fs::read_to_string(&path).unwrap();
        assert_eq!(number, format!("{}\n", server.pid()));
        if taken_over {
            fs::write(&path, "1\n").unwrap();
        }
        server.signal(Signal::TERM);
        assert_eq!(server.wait().code(), Some(0));
        assert_eq!(path.exists(), taken_over);
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn a_file_that_cannot_be_written_is_refused_by_name() {
    for flag in ["--pid", "--access-log", "--error-log"] {
        let message = error_of(&["serve", "-p", "0", flag, "/nowhere/file"]);
        assert!(message.contains(flag), "{message}");
        assert!(message.contains("/nowhere/file"), "{message}");
    }
}

#[test]
fn logs_go_to_files_which_are_opened_anew() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let (access, error) = (path("access.log"), path("error.log"));
    let mut serve = command(&["serve", "-p", "0", "--log-level", "greenroom_cli=info"]);
    serve
        .arg("--access-log")
        .arg(&access)
        .arg("--error-log")
        .arg(&error);
    let mut server = Running::spawn(&mut serve);
    let line = await_line(&error, "listening");
    let (_, address) = line.split_once("http://").unwrap();
    address.clone_into(&mut server.address);

    server.get("/hello?first");
    await_line(&access, "/hello?first");
    fs::rename(&access, path("access.1")).unwrap();
    fs::rename(&error, path("error.1")).unwrap();
    server.signal(Signal::USR1);
    // The signal may come after a request that was sent after it.
    let begin = Instant::now();
    while !access.exists() {
        assert!(begin.elapsed() < PATIENCE, "it is not opened anew");
        server.get("/hello?second");
    }
    await_line(&access, "/hello?second");
    server.signal(Signal::TERM);
    assert_eq!(server.wait().code(), Some(0));
    await_line(&error, "nobody was cut off");
    assert!(!fs::read_to_string(&error).unwrap().contains("/hello"));
    assert!(
        fs::read_to_string(path("access.1"))
            .unwrap()
            .contains("/hello?first")
    );
    let on_standard_error = server.rest_of_log();
    assert!(on_standard_error.is_empty(), "{on_standard_error:#?}");
}

#[test]
fn a_signal_to_open_logs_anew_ends_nobody_without_files() {
    let server = Running::serve(&[]);
    server.signal(Signal::USR1);
    assert!(server.get("/health").ends_with("ok\n"));
}

#[test]
fn users_and_groups_that_are_not_known_are_named() {
    for (flag, name) in [("--user", "no-such-user"), ("--group", "no-such-group")] {
        let message = error_of(&["serve", "-p", "0", flag, name]);
        assert!(message.contains(name), "{message}");
    }
}

/// Returns `true` for root, who alone can try the rest.
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
pub(crate) fn is_root() -> bool {
    let is_root = geteuid().is_root();
    if !is_root {
        eprintln!("SKIPPED: only root can become another user");
    }
    is_root
}

/// Returns the lines of these fields in the status of a process' threads, one for each difference.
pub(crate) fn of_threads(pid: u32, fields: &[&str]) -> Vec<String> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let mut found: Vec<String> = threads
        .filter_map(|thread| fs::read_to_string(thread.unwrap().path().join("status")).ok())
        .flat_map(|status| {
            let lines = status.lines().map(str::to_owned);
            lines
                .filter(|line| fields.iter().any(|name| line.starts_with(name)))
                .collect::<Vec<_>>()
        })
        .collect();
    found.sort();
    found.dedup();
    found
}

#[test]
fn lines_for_requests_are_those_of_apache() {
    let directory = tempfile::tempdir().unwrap();
    let access = directory.path().join("access.log");
    let mut serve = command(&["serve", "-p", "0", "--access-log-format", "combined"]);
    let mut server = Running::start(serve.arg("--access-log").arg(&access));
    let head = "GET /hello?a=b HTTP/1.0\r\nReferer: http://example.org/\r\n\
        User-Agent: a \"quoted\\\u{e4}\" one\r\n\r\n";
    let mut client = server.connect();
    client.write_all(head.as_bytes()).unwrap();
    read_to_end(client);
    let mut client = server.connect();
    client.write_all(b"nonsense\r\n\r\n").unwrap();
    read_to_end(client);
    let refused = await_line(&access, " 400 ");
    let line = await_line(&access, "/hello");
    let (begin, rest) = line.split_once('[').unwrap();
    let (time, rest) = rest.split_once("] ").unwrap();
    assert_eq!(begin, "127.0.0.1 - - ");
    assert_eq!((time.len(), &time[20..]), (26, " +0000"), "{line}");
    let expected = "\"GET /hello?a=b HTTP/1.0\" 200 14 \"http://example.org/\" \
        \"a \\x22quoted\\x5C\\xC3\\xA4\\x22 one\"";
    assert_eq!(rest, expected);
    assert!(refused.ends_with("] \"-\" 400 - \"-\" \"-\""), "{refused}");
    server.signal(Signal::TERM);
    assert_eq!(server.wait().code(), Some(0));

    // Without a file they are among the others.
    let server = Running::serve(&["--access-log-format", "common"]);
    server.get("/hello");
    let line = server.wait_for_log("/hello");
    assert!(line.ends_with("\"GET /hello HTTP/1.1\" 200 14"), "{line}");
    server.signal(Signal::TERM);
    server.wait_for_log("nobody was cut off");
}

#[test]
fn all_threads_are_the_user_and_what_needs_root_is_done_before() {
    if !is_root() {
        return;
    }
    // No other user may enter it.
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let (socket, pid, log) = (path("a.sock"), path("pid"), path("access.log"));
    let mut serve = command(&["serve", "--user", "nobody", "--group", "65534", "-l"]);
    serve
        .arg(&socket)
        .arg("--pid")
        .arg(&pid)
        .arg("--access-log")
        .arg(&log);
    let mut server = Running::start(&mut serve);
    let mut client = UnixStream::connect(&socket).unwrap();
    let close = b"GET /block/1 HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n";
    client.write_all(close).unwrap();
    assert!(read_to_end(client).starts_with("HTTP/1.1 200"));
    await_line(&log, "/block/1");

    let all = NOBODY.to_string();
    let four = [&*all; 4].join("\t");
    let expected = [
        "CapEff:\t0000000000000000".to_owned(),
        "CapPrm:\t0000000000000000".to_owned(),
        format!("Gid:\t{four}"),
        format!("Groups:\t{all} "),
        format!("Uid:\t{four}"),
    ];
    let fields = ["Uid:", "Gid:", "Groups:", "CapEff:", "CapPrm:"];
    assert_eq!(of_threads(server.pid(), &fields), expected);
    for file in [&socket, &log] {
        let metadata = fs::metadata(file).unwrap();
        assert_eq!(
            (metadata.uid(), metadata.gid()),
            (NOBODY, NOBODY),
            "{}",
            file.display()
        );
    }
    // So that no other user can have the service manager signal another process.
    assert_eq!(fs::metadata(&pid).unwrap().uid(), 0);
    server.signal(Signal::TERM);
    assert_eq!(server.wait().code(), Some(0));
    assert_eq!(
        fs::read_to_string(&pid).unwrap(),
        "",
        "it could not be removed"
    );
}

#[test]
fn a_link_in_the_place_of_a_log_is_not_followed_for_another_user() {
    if !is_root() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (precious, link) = (
        directory.path().join("precious"),
        directory.path().join("access.log"),
    );
    fs::write(&precious, "text").unwrap();
    symlink(&precious, &link).unwrap();
    let flags = ["serve", "-p", "0", "--user", "nobody", "--access-log"];
    let message = error_of(&[&flags[..], &[link.to_str().unwrap()]].concat());
    assert!(message.contains("access.log"), "{message}");
    assert_eq!(fs::metadata(&precious).unwrap().uid(), 0);
}

#[test]
fn who_is_not_root_can_only_stay_who_it_is() {
    if !is_root() {
        return;
    }
    let as_nobody = |flags: &[&str]| {
        let mut serve = command(&[&["serve", "-l", "127.0.0.1:0"], flags].concat());
        serve.uid(NOBODY).gid(NOBODY);
        serve
    };
    let refused = as_nobody(&["--user", "root"]).output().unwrap();
    let message = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2), "{message}");
    assert!(message.contains("only root may"), "{message}");
    let flags = ["--user", "65534", "--group", "65534"];
    let server = Running::start(&mut as_nobody(&flags));
    assert!(server.get("/health").ends_with("ok\n"));
}

#[test]
fn help_tells_of_users_and_files() {
    let help = String::from_utf8(output(&["serve", "--help"]).stdout).unwrap();
    for text in [
        "--user",
        "--group",
        "--pid",
        "--access-log",
        "--error-log",
        "-e <CODE>",
        "--backlog",
        "SIGUSR1",
        "start_server",
    ] {
        assert!(help.contains(text), "{text}");
    }
}
