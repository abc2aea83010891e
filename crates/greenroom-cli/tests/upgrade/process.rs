//! The process: its number's file, its sockets' files, its user, who started it.

use std::fs;
use std::io::Write;
use std::os::unix::net::UnixStream;

use rustix::process::geteuid;

use crate::program::{Running, command, read_to_end};
use crate::versions::{Versions, get_at, until};

#[test]
fn the_file_of_the_number_is_true_after_each_upgrade() {
    let mut versions = Versions::serve(&["--pid", "pid"]);
    let file = versions.directory.path().join("pid");
    let number = || fs::read_to_string(&file).unwrap();
    assert_eq!(number(), format!("{}\n", versions.pid));
    for _ in 0..5 {
        let before = versions.pid;
        let path = file.to_str().unwrap();
        let asked = crate::program::output(&["upgrade", "--pid-file", path]);
        assert!(asked.status.success());
        let now = number().trim().parse().unwrap();
        assert_ne!(now, before);
        versions.now(now);
        versions.gone(before);
        assert_eq!(number(), format!("{now}\n"));
    }
    versions.replace_by("exit 1");
    versions.fails();
    assert_eq!(number(), format!("{}\n", versions.pid));
    versions.end();
    assert!(!file.exists());
}

#[test]
fn a_unix_socket_and_the_admin_server_go_over() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("a.sock");
    let admin = directory.path().join("admin.sock");
    let mut versions = Versions::serve_in(
        directory,
        &["-l", "unix:a.sock", "--status-listen", "unix:admin.sock"],
    );
    for _ in 0..2 {
        let before = versions.pid;
        versions.upgrade();
        versions.gone(before);
        assert!(get_at(&socket).ends_with("Hello, world!\n"));
        let mut client = UnixStream::connect(&admin).unwrap();
        let request = b"GET /greenroom/status HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n";
        client.write_all(request).unwrap();
        assert!(read_to_end(client).starts_with("HTTP/1.1 200"));
    }
    versions.end();
    assert!(!socket.exists() && !admin.exists());
}

#[test]
fn sockets_that_were_passed_on_go_over_and_stay_open() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let ours = listener.try_clone().unwrap();
    let script = "exec 3<&0 </dev/null; export LISTEN_FDS=1 LISTEN_PID=$$; exec \"$0\" serve";
    let mut shell = std::process::Command::new("/bin/sh");
    shell.args(["-c", script, env!("CARGO_BIN_EXE_greenroom")]);
    shell
        .env_clear()
        .stdin(std::os::fd::OwnedFd::from(listener));
    let mut versions = Versions::of(Running::start(&mut shell));
    assert_eq!(versions.first.address, address);
    for _ in 0..2 {
        let before = versions.pid;
        versions.upgrade();
        versions.gone(before);
        assert!(versions.get("/hello").ends_with("Hello, world!\n"));
    }
    versions.end();
    // Nobody is refused: who comes now waits for whoever gets the socket next.
    let _waiting = std::net::TcpStream::connect(address).unwrap();
    drop(ours);
}

#[test]
fn start_server_and_systemd_are_not_left_without_their_process() {
    let cases = [
        ("SERVER_STARTER_PORT=${LISTEN}", "SIGHUP"),
        ("SYSTEMD_EXEC_PID=$$", "Type=notify"),
    ];
    for (variable, said) in cases {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let script = format!(
            "exec 3<&0 </dev/null; LISTEN=5000=3; export {variable}; exec \"$0\" serve {}",
            if said == "SIGHUP" {
                ""
            } else {
                "-l 127.0.0.1:0"
            }
        );
        let mut shell = std::process::Command::new("/bin/sh");
        shell.args(["-c", &script, env!("CARGO_BIN_EXE_greenroom")]);
        shell
            .env_clear()
            .stdin(std::os::fd::OwnedFd::from(listener));
        let versions = Versions::of(Running::start(&mut shell));
        let message = versions.fails();
        assert!(message.contains(said), "{message}");
        assert!(versions.get("/hello").ends_with("Hello, world!\n"));
    }
}

#[test]
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn who_is_not_root_any_more_writes_the_number_and_keeps_the_port() {
    if !geteuid().is_root() {
        eprintln!("SKIPPED: only root can become another user");
        return;
    }
    let (directory, programs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    // The program must be one that another user can start.
    let program = programs.path().join("greenroom");
    fs::copy(env!("CARGO_BIN_EXE_greenroom"), &program).unwrap();
    let all = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(programs.path(), all).unwrap();
    let file = directory.path().join("pid");
    let serve = command(&[
        "serve",
        "-l",
        "127.0.0.1:0",
        "--user",
        "nobody",
        "--group",
        "65534",
    ]);
    let mut called = std::process::Command::new(&program);
    called
        .args(serve.get_args())
        .env_clear()
        .arg("--pid")
        .arg(&file);
    let mut versions = Versions::of(Running::start(called.current_dir("/")));
    for _ in 0..2 {
        let before = versions.pid;
        versions.upgrade();
        assert_eq!(
            fs::read_to_string(&file).unwrap(),
            format!("{}\n", versions.pid)
        );
        versions.gone(before);
        assert!(versions.get("/hello").ends_with("Hello, world!\n"));
    }
    versions.end();
    until("the number stays", || {
        fs::read_to_string(&file).unwrap_or_default().is_empty()
    });
}
