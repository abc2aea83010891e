//! Next versions that do not serve: the one before goes on.

use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::process::geteuid;

use crate::authority::Authority;
use crate::versions::{Kept, Versions, ask, get_at, lives, until};

/// Asserts that the version before serves, also on a connection from before.
fn assert_unharmed(versions: &Versions, kept: &mut Kept) {
    assert!(lives(versions.pid));
    let response = kept.get("/hello").expect("it was kept");
    assert!(response.ends_with("Hello, world!\n"), "{response}");
    let head = response.to_ascii_lowercase();
    assert!(!head.contains("connection: close"), "{response}");
    assert!(versions.get("/hello").ends_with("Hello, world!\n"));
}

#[test]
fn one_that_fails_leaves_the_one_before_serving() {
    let mut versions = Versions::serve(&["--upgrade-timeout", "1s"]);
    let mut kept = Kept::connect(&versions.first.address);
    assert_unharmed(&versions, &mut kept);

    versions.replace_by("exit 7");
    let message = versions.fails();
    assert!(message.contains("exit status: 7"), "{message}");
    versions.first.wait_for_log("exit status: 7");
    assert_unharmed(&versions, &mut kept);

    versions.replace_by("kill -SEGV $$");
    let message = versions.fails();
    assert!(message.contains("signal: 11"), "{message}");
    assert_unharmed(&versions, &mut kept);

    let hung = versions.directory.path().join("hung");
    versions.replace_by(&format!("echo $$ > {}; exec sleep 600", hung.display()));
    let message = versions.fails();
    assert!(message.contains("within 1s (upgrade_timeout)"), "{message}");
    let pid = fs::read_to_string(hung).unwrap().trim().parse().unwrap();
    until("it goes on hanging", || !lives(pid));
    assert_unharmed(&versions, &mut kept);

    fs::remove_file(versions.program()).unwrap();
    let message = versions.fails();
    let path = versions.program().display().to_string();
    assert!(message.contains(&path), "{message}");
    assert!(message.contains("No such file"), "{message}");
    versions.first.wait_for_log("this one goes on");
    assert_unharmed(&versions, &mut kept);

    // None of that is in the way of one that works.
    versions.restore();
    versions.upgrade();
    assert!(versions.get("/hello").ends_with("Hello, world!\n"));
}

#[test]
fn one_whose_settings_are_wrong_says_so_in_both_logs() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("greenroom.toml");
    let sites = "[server]\nlisten = \"127.0.0.1:0\"\n[[site]]\n[[site.route]]\npath = \"/\"\n";
    fs::write(&file, format!("{sites}respond = \"one\"\n")).unwrap();
    let mut versions = Versions::start(directory, &["greenroom.toml"]);
    assert!(versions.get("/").ends_with("one"));

    fs::write(&file, format!("{sites}respnd = \"two\"\n")).unwrap();
    let message = versions.fails();
    assert!(message.contains("there is no `respnd`"), "{message}");
    versions.first.wait_for_log("this one goes on");
    assert!(versions.get("/").ends_with("one"));

    // An address that somebody else has.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let listen = format!("listen = [\"127.0.0.1:0\", \"{address}\"]");
    let other = sites.replace("listen = \"127.0.0.1:0\"", &listen);
    fs::write(&file, format!("{other}respond = \"two\"\n")).unwrap();
    let message = versions.fails();
    assert!(
        message.contains(&format!("cannot listen on {address}")),
        "{message}"
    );
    assert!(versions.get("/").ends_with("one"));

    drop(taken);
    versions.upgrade();
    assert!(versions.get("/").ends_with("two"));
}

#[test]
fn one_that_fails_leaves_the_files_of_unix_sockets() {
    let directory = tempfile::tempdir().unwrap();
    let (socket, admin) = (
        directory.path().join("a.sock"),
        directory.path().join("admin.sock"),
    );
    let flags = ["-l", "unix:a.sock", "--status-listen", "unix:admin.sock"];
    let mut versions = Versions::start(directory, &flags);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    // While it binds, behind that, and once the version before has stepped back.
    for (flags, said) in [
        (
            format!("-l {address}"),
            format!("cannot listen on {address}"),
        ),
        ("--access-log no/log".to_owned(), "no/log".to_owned()),
        ("--pid no/pid".to_owned(), "no/pid".to_owned()),
    ] {
        let program = env!("CARGO_BIN_EXE_greenroom");
        versions.replace_by(&format!("exec {program} \"$@\" {flags}"));
        let message = versions.fails();
        assert!(message.contains(&said), "{message}");
        assert!(get_at(&socket).ends_with("Hello, world!\n"), "{flags}");
        assert!(get_at(&admin).starts_with("HTTP/1.1 "), "{flags}");
    }
    versions.restore();
    let before = versions.pid;
    versions.upgrade();
    versions.gone(before);
    assert!(get_at(&socket).ends_with("Hello, world!\n"));
    versions.end();
    assert!(!socket.exists() && !admin.exists());
}

#[test]
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn one_that_is_to_serve_as_another_user_leaves_unix_sockets_their_owner() {
    if !geteuid().is_root() {
        eprintln!("SKIPPED: only root can become another user");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (socket, new) = (
        directory.path().join("a.sock"),
        directory.path().join("b.sock"),
    );
    let owner = |path: &Path| fs::symlink_metadata(path).unwrap().uid();
    let mut versions = Versions::start(directory, &["-l", "unix:a.sock"]);
    let program = env!("CARGO_BIN_EXE_greenroom");
    let serve = format!("exec {program} \"$@\" -l unix:b.sock --user 65534 --group 65534");
    versions.replace_by(&format!("{serve} --access-log no/log"));
    let message = versions.fails();
    assert!(message.contains("no/log"), "{message}");
    assert_eq!(owner(&socket), 0);
    assert!(get_at(&socket).ends_with("Hello, world!\n"));
    // One that serves gives its user what it has bound itself.
    versions.replace_by(&serve);
    versions.upgrade();
    assert_eq!((owner(&socket), owner(&new)), (0, 65_534));
    assert!(get_at(&socket).ends_with("Hello, world!\n"));
    versions.first.wait_for_log("keeps its owner");
}

#[test]
fn one_that_cannot_read_its_key_names_file_and_reason_once() {
    let authority = Authority::new();
    authority.issue("server", "server.test");
    let flags = authority.flags("server");
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let mut versions = Versions::serve(&flags);
    let (key, hidden) = (authority.path("server.key"), authority.path("hidden"));
    fs::rename(&key, &hidden).unwrap();
    let message = versions.fails();
    let expected = format!("cannot read {}", key.display());
    for once in [&*expected, "No such file or directory"] {
        assert_eq!(message.matches(once).count(), 1, "{message}");
    }
    let line = versions.first.wait_for_log("this one goes on");
    assert_eq!(line.matches("No such file").count(), 1, "{line}");
    fs::rename(hidden, key).unwrap();
    versions.upgrade();
}

#[test]
fn one_that_panics_while_it_loads_leaves_perl_serving() {
    let directory = tempfile::tempdir().unwrap();
    let app = directory.path().join("app.psgi");
    let socket = directory.path().join("a.sock");
    fs::write(&app, "sub { [200, [], ['one']] }").unwrap();
    let mut versions = Versions::serve_in(directory, &["app.psgi", "-l", "unix:a.sock"]);
    fs::write(&app, "die 'not today'").unwrap();
    let message = versions.fails();
    assert!(message.contains("not today"), "{message}");
    assert!(versions.get("/").ends_with("one"));
    assert!(get_at(&socket).ends_with("one"));
    fs::write(&app, "sub { [200, [], ['two']] }").unwrap();
    versions.upgrade();
    assert!(versions.get("/").ends_with("two"));
}

/// Begins an upgrade to a next version that writes a process number into `started` and hangs, ends
/// the version that serves meanwhile, and asserts that this process ends, too.
fn assert_nothing_is_left(versions: &mut Versions, started: &Path) {
    let asked = std::thread::scope(|scope| {
        let pid = versions.pid;
        let asking = scope.spawn(move || ask(pid));
        until("the next version does not start", || started.exists());
        versions.first.signal(rustix::process::Signal::TERM);
        asking.join().unwrap()
    });
    assert!(!asked.status.success());
    assert_eq!(versions.first.wait().code(), Some(0));
    let pid = fs::read_to_string(started).unwrap().trim().parse().unwrap();
    until("the next version goes on", || !lives(pid));
}

#[test]
fn a_drain_calls_an_upgrade_off() {
    for before in ["", "trap '' TERM;"] {
        let mut versions = Versions::serve(&[]);
        let started = versions.directory.path().join("started");
        let script = format!(
            "{before} echo $$ > {}.new; mv {0}.new {0}; exec sleep 600",
            started.display()
        );
        versions.replace_by(&script);
        assert_nothing_is_left(&mut versions, &started);
    }
}

#[test]
fn a_drain_calls_an_upgrade_off_whose_application_hangs() {
    let directory = tempfile::tempdir().unwrap();
    let (app, started) = (
        directory.path().join("app.psgi"),
        directory.path().join("started"),
    );
    fs::write(&app, "sub { [200, [], ['one']] }").unwrap();
    let mut versions = Versions::serve_in(directory, &["app.psgi"]);
    assert!(versions.get("/").ends_with("one"));
    let hangs = "open my $file, '>', 'started.new'; print $file $$; close $file;
        rename 'started.new', 'started'; sleep 600; sub {}";
    fs::write(&app, hangs).unwrap();
    assert_nothing_is_left(&mut versions, &started);
}

#[test]
fn an_upgrade_during_a_drain_is_refused() {
    let mut versions = Versions::serve(&["--drain-grace", "0s"]);
    // A request whose body does not come keeps the server.
    let mut client = versions.first.connect();
    let head = b"POST /echo HTTP/1.1\r\nHost: here\r\nContent-Length: 4\r\n\r\n";
    client.write_all(head).unwrap();
    versions.get("/hello");
    versions.first.signal(rustix::process::Signal::TERM);
    versions.first.wait_for_log("draining");
    let message = versions.fails();
    assert!(message.contains("it is draining"), "{message}");
    versions.first.wait_for_log("no upgrade is begun");
    client.write_all(b"body").unwrap();
    assert_eq!(versions.first.wait().code(), Some(0));
}
