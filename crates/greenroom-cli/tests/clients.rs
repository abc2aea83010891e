//! Real clients: the bytes that each of them sends and reads by itself, where hand-written requests
//! would only test their author's ideas.

mod outside;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use outside::http::{BODY_BYTES_MAX, HELLO, assert_hello};
use outside::server::Server;
use outside::tools;
use sha2::{Digest, Sha256};

const DEADLINE: Duration = Duration::from_mins(1);

/// The first use of Go compiles its standard library.
const BUILD_DEADLINE: Duration = Duration::from_mins(5);

#[test]
fn curl_keeps_its_connection() {
    let mut server = Server::start();
    let response = curl(&[
        "--write-out",
        "%{http_version} %{http_code} %{num_connects}\n",
    ])
    .urls(&[&server.url("/hello"), &server.url("/hello")])
    .run();
    assert_eq!(response, format!("{HELLO}1.1 200 1\n{HELLO}1.1 200 0\n"));
    server.assert_sound();
}

#[test]
fn curl_speaks_http_2_with_prior_knowledge() {
    let mut server = Server::start();
    let response = curl(&[
        "--http2-prior-knowledge",
        "--write-out",
        "%{http_version} %{http_code}\n",
    ])
    .urls(&[&server.url("/hello")])
    .run();
    assert_eq!(response, format!("{HELLO}2 200\n"));

    let file = body_file(1024 * 1024);
    let receipt = curl(&["--http2-prior-knowledge", "--data-binary"])
        .body(file.path())
        .urls(&[&server.url("/upload")])
        .run();
    assert_receipt(&receipt, 1024 * 1024);
    server.assert_sound();
}

/// curl offers the upgrade that RFC 9113 has abolished; a server may ignore it.
#[test]
fn curl_is_served_when_it_offers_to_upgrade_to_http_2() {
    let mut server = Server::start();
    let response = curl(&["--http2", "--write-out", "%{http_code}\n"])
        .urls(&[&server.url("/hello")])
        .run();
    assert_eq!(response, format!("{HELLO}200\n"));
    server.assert_sound();
}

#[test]
fn curl_gets_a_head_without_a_body() {
    let mut server = Server::start();
    let head = curl(&["--head"]).urls(&[&server.url("/hello")]).run();
    let head = head.to_ascii_lowercase();
    assert!(head.starts_with("http/1.1 200 ok\r\n"), "{head}");
    assert!(head.contains("\r\ncontent-length: 14\r\n"), "{head}");
    assert!(head.ends_with("\r\n\r\n"), "{head}");
    server.assert_sound();
}

#[test]
fn curl_uploads_up_to_the_limit() {
    let mut server = Server::start();
    for size in [0, 1, 65_536, 1024 * 1024, BODY_BYTES_MAX] {
        let file = body_file(size);
        let receipt = curl(&["--data-binary"])
            .body(file.path())
            .urls(&[&server.url("/upload")])
            .run();
        assert_receipt(&receipt, size);
        let receipt = curl(&["--header", "Transfer-Encoding: chunked", "--data-binary"])
            .body(file.path())
            .urls(&[&server.url("/upload")])
            .run();
        assert_receipt(&receipt, size);
        let receipt = curl(&["--upload-file"])
            .arg(file.path())
            .urls(&[&server.url("/upload")])
            .run();
        assert_receipt(&receipt, size);
    }
    server.assert_sound();
}

#[test]
fn curl_is_refused_a_body_beyond_the_limit() {
    let mut server = Server::start();
    let file = body_file(BODY_BYTES_MAX + 1);
    for options in [
        &["--header", "Expect:"][..],
        &[
            "--header",
            "Expect:",
            "--header",
            "Transfer-Encoding: chunked",
        ],
    ] {
        let status = curl(&["--output", "/dev/null", "--write-out", "%{http_code}"])
            .args(options)
            .args(&["--data-binary"])
            .body(file.path())
            .urls(&[&server.url("/upload")])
            .run();
        assert_eq!(status, "413", "with {options:?}");
    }
    assert_hello(server.address());
    server.assert_sound();
}

/// Not by curl: that of Debian 12 drops the response when, as RFC 9113 section 8.1 has it, a stream
/// is reset with `NO_ERROR` behind it.
#[test]
fn nghttp_is_refused_a_body_beyond_the_limit() {
    let mut server = Server::start();
    let file = body_file(BODY_BYTES_MAX + 1);
    let mut nghttp = tools::bounded(tools::system("nghttp"), DEADLINE);
    nghttp
        .args(["--verbose", "--data"])
        .arg(file.path())
        .arg(server.url("/upload"));
    let frames = tools::run(&mut nghttp).expect_success("nghttp").stdout;
    assert!(frames.contains(":status: 413"), "{frames}");
    assert!(!frames.contains("recv GOAWAY"), "{frames}");
    assert_hello(server.address());
    server.assert_sound();
}

#[test]
fn curl_waits_for_100_continue() {
    let mut server = Server::start();
    let file = body_file(1024 * 1024);
    let finished = curl(&["--verbose", "--header", "Expect: 100-continue"])
        .args(&["--expect100-timeout", "30", "--data-binary"])
        .body(file.path())
        .urls(&[&server.url("/upload")])
        .finish();
    assert!(
        finished.stderr.contains("< HTTP/1.1 100 Continue"),
        "{}",
        finished.stderr
    );
    assert_receipt(&finished.stdout, 1024 * 1024);
    server.assert_sound();
}

#[test]
fn curl_that_waits_for_100_sends_no_byte_of_a_refused_body() {
    let mut server = Server::start();
    let file = body_file(BODY_BYTES_MAX + 1);
    let sent = curl(&[
        "--output",
        "/dev/null",
        "--write-out",
        "%{http_code} %{size_upload}",
    ])
    .args(&["--header", "Expect: 100-continue"])
    .args(&["--expect100-timeout", "30", "--data-binary"])
    .body(file.path())
    .urls(&[&server.url("/upload")])
    .run();
    assert_eq!(sent, "413 0");
    server.assert_sound();
}

#[test]
fn curl_asks_over_a_unix_socket_and_over_ipv6() {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let socket = directory.path().join("socket");
    let unix = format!("unix:{}", socket.display());
    let mut server = Server::listening_on(&["127.0.0.1:0", "[::1]:0", &unix]);
    let path = socket.to_str().expect("the path is of UTF-8");
    let response = curl(&["--unix-socket", path])
        .urls(&["http://localhost/hello"])
        .run();
    assert_eq!(response, HELLO);
    let url = format!("http://{}/hello", server.address_of(1));
    assert_eq!(curl(&[]).urls(&[&url]).run(), HELLO);
    assert_hello(server.address());
    server.assert_sound();
}

#[test]
fn python_requests() {
    python("requests_client.py");
}

#[test]
fn python_httpx() {
    python("httpx_client.py");
}

#[test]
fn python_aiohttp() {
    python("aiohttp_client.py");
}

#[test]
fn go_net_http() {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let program = directory.path().join("client");
    let mut build = tools::bounded(tools::system("go"), BUILD_DEADLINE);
    build
        .args(["build", "-o"])
        .arg(&program)
        .arg(tools::script("clients/client.go"));
    tools::run(&mut build).expect_success("go build");
    let mut server = Server::start();
    let mut client = tools::bounded(program, DEADLINE);
    client.arg(server.url(""));
    tools::run(&mut client).expect_success("Go's net/http");
    server.assert_sound();
}

#[test]
fn node_undici() {
    let mut server = Server::start();
    let modules = tools::installed("node/node_modules/undici/index.js");
    let mut client = tools::bounded(tools::system("node"), DEADLINE);
    client
        .arg(tools::script("clients/undici_client.mjs"))
        .arg(server.url(""))
        .arg(modules.canonicalize().expect("it is installed"));
    tools::run(&mut client).expect_success("undici");
    server.assert_sound();
}

#[test]
fn ab_fails_no_request_with_and_without_keep_alive() {
    let mut server = Server::start();
    for (option, kept) in [("-k", "1000"), ("-q", "")] {
        let mut ab = tools::bounded(tools::system("ab"), DEADLINE);
        ab.args(["-n", "1000", "-c", "50", option, &server.url("/hello")]);
        let report = tools::run(&mut ab).expect_success("ab").stdout;
        assert_eq!(field(&report, "Complete requests:"), "1000", "{report}");
        assert_eq!(field(&report, "Failed requests:"), "0", "{report}");
        assert_eq!(
            field(&report, "HTML transferred:"),
            "14000 bytes",
            "{report}"
        );
        assert_eq!(field(&report, "Keep-Alive requests:"), kept, "{report}");
        assert!(!report.contains("Non-2xx"), "{report}");
    }
    server.assert_sound();
}

#[test]
fn wrk_sees_no_error() {
    let mut server = Server::start();
    let mut wrk = tools::bounded(tools::system("wrk"), DEADLINE);
    wrk.args(["-t", "1", "-c", "50", "-d", "2s", &server.url("/hello")]);
    let report = tools::run(&mut wrk).expect_success("wrk").stdout;
    assert!(report.contains(" requests in "), "{report}");
    assert!(!report.contains("Socket errors"), "{report}");
    assert!(!report.contains("Non-2xx"), "{report}");
    server.assert_sound();
}

struct Curl(Command);

fn curl(options: &[&str]) -> Curl {
    let mut command = tools::bounded(tools::system("curl"), DEADLINE);
    command.args(["--disable", "--silent", "--show-error", "--noproxy", "*"]);
    Curl(command).args(options)
}

impl Curl {
    fn args(mut self, options: &[&str]) -> Self {
        self.0.args(options);
        self
    }

    fn arg(mut self, path: &Path) -> Self {
        self.0.arg(path);
        self
    }

    /// Adds the file as the value of `--data-binary`.
    fn body(mut self, file: &Path) -> Self {
        self.0.arg(format!("@{}", file.display()));
        self
    }

    fn urls(self, urls: &[&str]) -> Self {
        self.args(urls)
    }

    fn finish(mut self) -> tools::Finished {
        tools::run(&mut self.0).expect_success("curl")
    }

    /// Runs curl and returns its standard output.
    fn run(self) -> String {
        self.finish().stdout
    }
}

fn python(script: &str) {
    let mut server = Server::start();
    let mut client = tools::bounded(tools::installed("python/bin/python"), DEADLINE);
    let script: PathBuf = tools::script("clients").join(script);
    client.arg("-B").arg(&script).arg(server.url(""));
    tools::run(&mut client).expect_success(&script.display().to_string());
    server.assert_sound();
}

/// Returns bytes that repeat with a period that divides no buffer's size.
fn body(size: usize) -> Vec<u8> {
    (0..=250).cycle().take(size).collect()
}

fn body_file(size: usize) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().expect("a temporary file can be made");
    std::fs::write(file.path(), body(size)).expect("it can be written");
    file
}

fn assert_receipt(response: &str, size: usize) {
    let receipt: serde_json::Value =
        serde_json::from_str(response).unwrap_or_else(|_| panic!("no receipt: {response}"));
    let sha256 = hex::encode(Sha256::digest(body(size)));
    assert_eq!(
        receipt,
        serde_json::json!({ "bytes": size, "sha256": sha256 })
    );
}

/// Returns the rest of the line that begins with `name`, empty when there is none.
fn field<'a>(report: &'a str, name: &str) -> &'a str {
    let rest = report.lines().find_map(|line| line.strip_prefix(name));
    rest.unwrap_or_default().trim()
}
