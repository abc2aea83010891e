//! The program behind real proxies: the clients that its log names.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod outside;
#[allow(dead_code, reason = "other tests use the rest")]
mod program;

use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsRawFd;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use outside::tools;
use program::{Running, command};
use rustix::io::{FdFlags, fcntl_setfd};
use tempfile::TempDir;

/// The address of the client, which is none of the proxy's.
const CLIENT: &str = "127.0.0.5";

const DEADLINE: Duration = Duration::from_mins(1);

/// `HAProxy` before one server. It is killed if a test forgets it or fails.
struct HaProxy {
    child: Child,
    address: SocketAddr,
    _directory: TempDir,
}

impl HaProxy {
    /// Starts it with these lines in its defaults, and the server as its configuration writes it.
    fn start(lines: &str, server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        // It inherits the port, as no other program may take it meanwhile.
        fcntl_setfd(&listener, FdFlags::empty()).unwrap();
        let port = listener.as_raw_fd();
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("haproxy.cfg");
        let configuration = format!(
            "global\n    maxconn 100\n\
             defaults\n    timeout connect 5s\n    timeout client 20s\n    timeout server 20s\n\
             listen edge\n    bind fd@{port}\n{lines}\n    server app {server}\n"
        );
        std::fs::write(&file, configuration).unwrap();
        let mut command = Command::new(tools::system("haproxy"));
        let child = command.arg("-db").arg("-f").arg(file);
        let child = child.stdin(Stdio::null()).spawn();
        Self {
            child: child.expect("HAProxy starts"),
            address: listener.local_addr().unwrap(),
            _directory: directory,
        }
    }
}

impl Drop for HaProxy {
    fn drop(&mut self) {
        // It may have ended already, which is no failure.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn curl(arguments: &[&str], address: impl std::fmt::Display) -> String {
    let mut command = tools::bounded(tools::system("curl"), DEADLINE);
    command.args(["--silent", "--show-error", "--interface", CLIENT]);
    command
        .args(arguments)
        .arg(format!("http://{address}/hello"));
    tools::run(&mut command).expect_success("curl").stdout
}

/// Asserts that the log of a server with these flags names the client of this request, which it
/// gets through `HAProxy`.
fn assert_named(flags: &str, lines: &str, server: &str, request: &str, expected: &str) {
    let arguments: Vec<_> = ["serve"].into_iter().chain(flags.split(' ')).collect();
    let greenroom = Running::start(&mut command(&arguments));
    let address = greenroom.address.replace("unix:", "unix@");
    let haproxy = HaProxy::start(lines, &format!("{address} {server}"));
    let request: Vec<_> = request.split(' ').collect();
    let response = curl(&request, haproxy.address);
    assert_eq!(response, outside::http::HELLO, "{flags}");
    let line = greenroom.wait_for_log("/hello");
    assert!(line.contains(expected), "{flags}: {line}");
}

fn socket(directory: &TempDir) -> String {
    directory.path().join("app.sock").display().to_string()
}

#[test]
fn haproxy_announces_the_client_of_a_connection() {
    let directory = tempfile::tempdir().unwrap();
    let unix = format!("--listen {} --trusted-proxy unix", socket(&directory));
    let tcp = "--listen 127.0.0.1:0";
    let trusting = format!("{tcp} --trusted-proxy 127.0.0.1");
    for (flags, server) in [
        (tcp, "send-proxy"),
        (&trusting, "send-proxy-v2 check"),
        (&unix, "send-proxy-v2"),
    ] {
        let flags = format!("{flags} --proxy-protocol");
        for request in ["--http1.1", "--http2-prior-knowledge"] {
            let expected = format!("peer={CLIENT}:");
            assert_named(&flags, "    mode tcp", server, request, &expected);
        }
    }
}

#[test]
fn haproxy_names_the_client_of_a_request() {
    let directory = tempfile::tempdir().unwrap();
    let unix = format!("--listen {} --trusted-proxy unix", socket(&directory));
    let tcp = "--listen 127.0.0.1:0 --trusted-proxy 127.0.0.1";
    let rfc_7239 = format!("{tcp} --forwarded-header forwarded");
    let adding = "    option forwardfor";
    let setting = "    http-request set-header Forwarded \"for=%[src]\"";
    for (flags, lines) in [(tcp, adding), (&unix, adding), (&rfc_7239, setting)] {
        let lines = format!("    mode http\n{lines}");
        let forged = "--header X-Forwarded-For:192.0.2.66";
        let expected = format!("client={CLIENT} ");
        assert_named(flags, &lines, "check", forged, &expected);
    }
}

#[test]
fn curl_announces_itself() {
    let flags = ["--listen", "127.0.0.1:0", "--proxy-protocol"];
    let greenroom = Running::start(&mut command(&[&["serve"], &flags[..]].concat()));
    for version in ["--http1.1", "--http2-prior-knowledge"] {
        let response = curl(&["--haproxy-protocol", version], &greenroom.address);
        assert_eq!(response, outside::http::HELLO, "{version}");
        let line = greenroom.wait_for_log("/hello");
        assert!(line.contains(&format!("peer={CLIENT}:")), "{line}");
    }
}
