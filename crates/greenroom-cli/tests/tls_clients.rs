//! Real clients over TLS: both versions, both protocols, connections that are kept, long bodies
//! both ways, resumption, and a browser.

mod authority;
mod outside;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use authority::Authority;
use outside::server::Server;
use outside::tools;
use sha2::{Digest, Sha256};

const DEADLINE: Duration = Duration::from_mins(5);
/// By name and not by address, so that clients ask for it (RFC 6066, 3).
const NAME: &str = "localhost";
const BODY_BYTES: usize = 5_000_000;
const LONG_BYTES: usize = 20_000_000;
const VERSIONS: [&str; 2] = ["1.2", "1.3"];

struct Served {
    authority: Authority,
    server: Server,
}

impl Served {
    fn start() -> Self {
        Self::with(|_| Vec::new())
    }

    /// With more flags, which may name files of the CA.
    fn with(more: impl Fn(&Authority) -> Vec<String>) -> Self {
        let authority = Authority::new();
        authority.issue("server", NAME);
        let mut flags = authority.flags("server");
        flags.extend(["--body-bytes-max", "6MB"].map(str::to_owned));
        flags.extend(more(&authority));
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let server = Server::with_flags(&flags);
        Self { authority, server }
    }

    fn base(&self) -> String {
        format!("https://{NAME}:{}", self.server.address().port())
    }

    /// A client that gets the server's URL and the file of the CA.
    fn client(&self, program: impl AsRef<std::ffi::OsStr>, script: Option<&str>) -> Command {
        let mut client = tools::bounded(program, DEADLINE);
        client.env("no_proxy", NAME).env("NO_PROXY", NAME);
        client.args(script.map(|script| tools::script("clients/tls").join(script)));
        client.arg(self.base()).arg(self.authority.path("root.pem"));
        client
    }

    fn curl(&self, options: &[&str], paths: &[&str]) -> String {
        let mut curl = tools::bounded(tools::system("curl"), DEADLINE);
        curl.args(["--disable", "--silent", "--show-error", "--noproxy", "*"])
            .arg("--cacert")
            .arg(self.authority.path("root.pem"))
            .args(options)
            .args(paths.iter().map(|path| format!("{}{path}", self.base())));
        tools::run(&mut curl).expect_success("curl").stdout
    }

    /// Runs a client to its end, which says by its status whether all was as it expects.
    fn visit(mut self, mut client: Command, what: &str) {
        tools::run(&mut client).expect_success(what);
        self.server.assert_sound();
    }
}

/// Returns bytes that repeat with a period that divides no buffer's size.
fn body() -> Vec<u8> {
    (0..=250).cycle().take(BODY_BYTES).collect()
}

#[test]
fn curl_moves_long_bodies_both_ways() {
    let mut served = Served::start();
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let file = directory.path().join("body");
    fs::write(&file, body()).expect("it can be written");
    let data = format!("@{}", file.display());
    let sum = hex::encode(Sha256::digest(body()));
    let receipt = format!("{{\"bytes\":{BODY_BYTES},\"sha256\":\"{sum}\"}}");
    for tls in VERSIONS {
        for protocol in ["--http1.1", "--http2"] {
            let version = format!("--tlsv{tls}");
            let options = ["--tls-max", tls, &version, protocol];
            let chunked = ["--header", "Transfer-Encoding: chunked"];
            // HTTP/2 knows no chunks (RFC 9113, 8.1).
            for more in [
                &[][..],
                &chunked[..usize::from(protocol == "--http1.1") * 2],
            ] {
                let upload = [&options[..], more, &["--data-binary", &data]].concat();
                assert_eq!(served.curl(&upload, &["/upload"]), receipt, "{upload:?}");
            }
            let count = ["--write-out", "%{size_download} %{num_connects}\n"];
            let download = [&options[..], &count, &["--output", "/dev/null"]].concat();
            // It is for one URL only.
            let download = [&download[..], &["--output", "/dev/null"]].concat();
            let long = format!("/bytes/{LONG_BYTES}");
            let told = served.curl(&download, &["/hello", &long]);
            assert_eq!(told, format!("14 1\n{LONG_BYTES} 0\n"), "{download:?}");
        }
    }
    served.server.assert_sound();
}

/// `openssl s_client`, which writes lines to its server and obeys some letters.
fn s_client(served: &Served, options: &[&str]) -> Command {
    let mut client = tools::bounded(tools::system("openssl"), DEADLINE);
    client
        .args(["s_client", "-connect", &served.server.address().to_string()])
        .args(["-servername", NAME, "-verify_return_error", "-CAfile"])
        .arg(served.authority.path("root.pem"))
        .args(options)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    client
}

const LAST_REQUEST: &[u8] = b"GET /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

/// Has openssl ask for `/hello`, and returns what it tells of the session.
fn session(served: &Served, options: &[&str]) -> String {
    let mut client = s_client(served, &[&["-ign_eof"], options].concat())
        .spawn()
        .expect("openssl starts");
    let mut requests = client.stdin.take().expect("it is a pipe");
    requests.write_all(LAST_REQUEST).expect("it reads");
    let ended = client.wait_with_output().expect("openssl is our child");
    drop(requests);
    let told = String::from_utf8_lossy(&ended.stdout).into_owned();
    assert!(told.contains("Hello, world!"), "{options:?}: {told}");
    told
}

#[test]
fn openssl_resumes_its_sessions() {
    let mut served = Served::start();
    let kept = served.authority.text("session");
    for (version, named) in [("-tls1_2", "TLSv1.2"), ("-tls1_3", "TLSv1.3")] {
        let told = session(&served, &[version, "-sess_out", &kept]);
        assert!(told.contains(&format!("New, {named}, ")), "{told}");
        for _ in 0..2 {
            // A ticket of TLS 1.3 is for one connection, which brings the next.
            let told = session(&served, &[version, "-sess_in", &kept, "-sess_out", &kept]);
            assert!(told.contains(&format!("Reused, {named}, ")), "{told}");
        }
    }
    // Without tickets TLS 1.2 has nothing to resume from: the server stores no sessions.
    let options = ["-tls1_2", "-no_ticket"];
    session(&served, &[&options[..], &["-sess_out", &kept]].concat());
    let told = session(&served, &[&options[..], &["-sess_in", &kept]].concat());
    assert!(told.contains("New, TLSv1.2, "), "{told}");
    served.server.assert_sound();
}

#[test]
fn openssl_changes_its_keys() {
    let mut served = Served::start();
    let mut client = s_client(&served, &["-tls1_3"]).spawn().expect("it starts");
    let mut input = client.stdin.take().expect("it is a pipe");
    let mut errors = BufReader::new(client.stderr.take().expect("it is a pipe")).lines();
    let mut output = BufReader::new(client.stdout.take().expect("it is a pipe")).lines();
    // k changes its own, K asks the server for its, too.
    for letter in ["k\n", "K\n"].repeat(3) {
        input.write_all(letter.as_bytes()).expect("it reads");
        let told = errors.find(|line| line.as_ref().is_ok_and(|line| line == "KEYUPDATE"));
        assert!(told.is_some(), "{letter}");
        input
            .write_all(b"GET /hello HTTP/1.1\r\nHost: a\r\n\r\n")
            .expect("it reads");
        let hello = output.find(|line| line.as_ref().is_ok_and(|line| line == "Hello, world!"));
        assert!(hello.is_some(), "{letter}");
    }
    drop(input);
    client.wait().expect("openssl is our child");
    served.server.assert_sound();
}

#[test]
fn go_net_http() {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let program = directory.path().join("client");
    let mut build = tools::bounded(tools::system("go"), DEADLINE);
    build.args(["build", "-o"]).arg(&program);
    build.arg(tools::script("clients/tls/client.go"));
    tools::run(&mut build).expect_success("go build");
    let served = Served::with(|authority| {
        authority.issue("client", "client.test");
        vec!["--client-ca".to_owned(), authority.text("root.pem")]
    });
    let mut client = served.client(program, None);
    client.arg(served.authority.path("client.pem"));
    client.arg(served.authority.path("client.key"));
    served.visit(client, "Go's net/http");
}

#[test]
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn java_http_client() {
    if !tools::is_on_path("javac") {
        eprintln!("skipped: there is no JDK, which must compile the client");
        return;
    }
    let served = Served::start();
    let client = served.client("java", Some("Client.java"));
    served.visit(client, "Java's HttpClient");
}

#[test]
fn python_requests_and_httpx() {
    let served = Served::start();
    let mut client = served.client(tools::installed("python/bin/python"), Some("client.py"));
    client.env("PYTHONDONTWRITEBYTECODE", "1");
    served.visit(client, "Python's requests and httpx");
}

#[test]
fn perl_lwp_and_http_tiny() {
    let served = Served::start();
    let client = served.client(tools::system("perl"), Some("client.pl"));
    served.visit(client, "Perl's LWP and HTTP::Tiny");
}

#[test]
fn node_https_http2_and_fetch() {
    let served = Served::start();
    let mut client = served.client(tools::system("node"), Some("client.mjs"));
    client.env("NODE_EXTRA_CA_CERTS", served.authority.path("root.pem"));
    served.visit(client, "Node");
}

#[test]
fn chromium() {
    let served = Served::start();
    let playwright = tools::installed("node/node_modules/playwright-core/index.mjs");
    let mut client = tools::bounded(tools::system("node"), DEADLINE);
    client
        .arg(tools::script("clients/tls/browser.mjs"))
        .arg(served.base())
        .arg(playwright.canonicalize().expect("it is installed"))
        .arg(Path::new("/usr/bin").join(tools::system("chromium")));
    served.visit(client, "Chromium");
}
