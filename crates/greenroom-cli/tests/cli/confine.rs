//! The process gives up capabilities, new privileges and dumps of its memory before it serves.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::geteuid;
use tempfile::TempDir;

use crate::process::{NOBODY, is_root, of_threads};
use crate::program::{Running, command};

/// An application that tells what becomes of opening a file of the process directory in the query.
const READER: &str = r#"sub {
    my ($env) = @_;
    my $said = open(my $file, '<', "/proc/$env->{QUERY_STRING}") ? 'opened' : "$!";
    return [200, ['Content-Type' => 'text/plain'], ["$said\n"]];
};
"#;

/// Writes the application where every user can read it.
fn reader() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
    fs::write(directory.path().join("app.psgi"), READER).unwrap();
    directory
}

/// Returns the command as a user without rights: root may read everything.
fn without_rights(mut command: Command) -> Command {
    if geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

/// Serves the application over TLS, and at an address without it, which is the one returned.
fn serve_with_keys(directory: &TempDir, flags: &[&str]) -> Running {
    let mut serve = command(&["serve", "--tls-self-signed", "--workers", "1"]);
    serve.args(["--listen", "127.0.0.1:0", "--listen-plain", "127.0.0.1:0"]);
    serve.args(flags).arg(directory.path().join("app.psgi"));
    serve.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    let mut server = Running::start(&mut without_rights(serve));
    let line = server.wait_for_log("http://127.0.0.1:");
    let (_, address) = line.split_once("http://").unwrap();
    address
        .trim_end_matches('/')
        .clone_into(&mut server.address);
    server
}

fn opened_by_worker(server: &Running, file: &str) -> String {
    let response = server.get(&format!("/?{}/{file}", server.pid()));
    let (_, body) = response.split_once("\r\n\r\n").unwrap();
    body.trim_end().to_owned()
}

#[test]
fn a_worker_cannot_read_the_memory_that_holds_keys() {
    let directory = reader();
    let server = serve_with_keys(&directory, &[]);
    for file in ["environ", "mem"] {
        assert_eq!(opened_by_worker(&server, file), "Permission denied");
    }
    assert_eq!(opened_by_worker(&server, "status"), "opened");
}

#[test]
fn core_dumps_and_debuggers_can_be_let_in() {
    let directory = reader();
    let server = serve_with_keys(&directory, &["--core-dumps"]);
    assert_eq!(opened_by_worker(&server, "environ"), "opened");
}

#[test]
fn no_thread_can_gain_privileges_unless_it_is_allowed() {
    for (flags, expected) in [
        (&[][..], "NoNewPrivs:\t1"),
        (&["--allow-new-privileges"], "NoNewPrivs:\t0"),
    ] {
        let server = Running::serve(flags);
        server.get("/block/1");
        assert_eq!(of_threads(server.pid(), &["NoNewPrivs:"]), [expected]);
    }
}

#[test]
fn capabilities_that_were_lent_for_binding_are_given_back() {
    if !is_root() {
        return;
    }
    let user = NOBODY.to_string();
    let mut serve = Command::new("setpriv");
    serve.args(["--reuid", &user, "--regid", &user, "--clear-groups"]);
    serve.args(["--inh-caps", "+net_bind_service"]);
    serve.args(["--ambient-caps", "+net_bind_service"]);
    serve.arg(env!("CARGO_BIN_EXE_greenroom"));
    serve.args(["serve", "--listen", "127.0.0.1:0"]).env_clear();
    serve.env("PATH", "/usr/bin:/bin");
    let server = Running::start(&mut serve);
    server.get("/block/1");
    let sets = ["CapAmb:", "CapEff:", "CapInh:", "CapPrm:"];
    let none = sets.map(|set| format!("{set}\t0000000000000000"));
    assert_eq!(of_threads(server.pid(), &sets), none);
}
