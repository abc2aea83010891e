//! TLS as clients see it that we did not write: curl, openssl, testssl.sh; h2spec is in
//! `h2spec.rs`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod authority;
mod outside;
#[allow(dead_code, reason = "these tests use a part of it")]
mod program;

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use authority::Authority;
use outside::tools;
use program::{Running, command, output};
use rustix::process::Signal;

const DEADLINE: Duration = Duration::from_mins(2);
const NAME: &str = "server.test";

fn serve(flags: &[String]) -> Running {
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    Running::serve(&flags)
}

/// Runs curl for this path of the server, by its name.
fn curl(authority: &Authority, server: &Running, flags: &[&str], path: &str) -> tools::Finished {
    let (address, port) = server.address.split_once(':').expect("a port");
    let mut curl = tools::bounded(tools::system("curl"), DEADLINE);
    curl.args(["--silent", "--show-error", "--cacert"])
        .arg(authority.path("root.pem"))
        .args(["--resolve", &format!("{NAME}:{port}:{address}")])
        .args(flags)
        .arg(format!("https://{NAME}:{port}{path}"));
    tools::run(&mut curl)
}

fn serial(authority: &Authority, server: &Running) -> String {
    let mut openssl = tools::bounded(tools::system("openssl"), DEADLINE);
    openssl
        .args([
            "s_client",
            "-connect",
            &server.address,
            "-servername",
            NAME,
            "-CAfile",
        ])
        .arg(authority.path("root.pem"));
    let shown = tools::run(&mut openssl).stdout;
    let file = authority.path("shown.pem");
    fs::write(&file, shown).expect("it is written");
    let mut openssl = tools::bounded("openssl", DEADLINE);
    openssl.args(["x509", "-noout", "-serial", "-in"]).arg(file);
    tools::run(&mut openssl)
        .expect_success("openssl x509")
        .stdout
}

#[test]
fn curl_speaks_both_protocols_over_both_versions() {
    let authority = Authority::new();
    authority.issue("server", NAME);
    let server = serve(&authority.flags("server"));
    for (protocol, version) in [("--http1.1", "1.1"), ("--http2", "2")] {
        for tls in [&["--tls-max", "1.2"][..], &["--tlsv1.3"]] {
            let flags = [
                &[
                    protocol,
                    "--write-out",
                    "%{http_version} %{ssl_verify_result}",
                ],
                tls,
            ];
            let told = curl(&authority, &server, &flags.concat(), "/hello");
            let told = told.expect_success("curl").stdout;
            assert_eq!(
                told,
                format!("Hello, world!\n{version} 0"),
                "{protocol} {tls:?}"
            );
        }
    }
    let refused = curl(&authority, &server, &["--tls-max", "1.1"], "/hello");
    assert!(!refused.succeeded, "{}", refused.stdout);
}

#[test]
fn hangup_reads_the_certificates_again_or_keeps_them() {
    let authority = Authority::new();
    authority.issue("server", NAME);
    let server = serve(&authority.flags("server"));
    let first = serial(&authority, &server);
    authority.issue("server", NAME);
    assert_eq!(serial(&authority, &server), first);
    server.signal(Signal::HUP);
    server.wait_for_log("read the certificates again");
    let second = serial(&authority, &server);
    assert_ne!(second, first);
    fs::write(
        authority.path("server.key"),
        "-----BEGIN PRIVATE KEY-----\n",
    )
    .unwrap();
    server.signal(Signal::HUP);
    let line = server.wait_for_log("the certificates stay what they were");
    assert!(
        line.contains("server.key:1: what begins here has no"),
        "{line}"
    );
    assert_eq!(serial(&authority, &server), second);
}

/// A certificate's file, a key's, and what is told of them.
type Pair = (String, String, &'static str);

/// Pairs of files that are not in order.
fn broken(authority: &Authority) -> Vec<Pair> {
    authority.issue("one", NAME);
    authority.issue("two", NAME);
    [broken_keys(authority), broken_chains(authority)].concat()
}

fn broken_keys(authority: &Authority) -> Vec<Pair> {
    let (certificate, key) = (authority.text("one.pem"), authority.text("one.key"));
    let encrypt = ["pkey", "-in", &key, "-aes256", "-passout", "pass:a"];
    let encrypted = made_by_openssl(authority, &encrypt, "encrypted.key");
    let der = made_by_openssl(
        authority,
        &["pkey", "-in", &key, "-outform", "DER"],
        "der.key",
    );
    let empty = written(authority, "empty.key", "");
    let other = authority.text("two.key");
    [
        (other, "two.key:1: the key is not that of"),
        (authority.text("missing"), "cannot read "),
        (authority.text(""), "Is a directory"),
        (empty, "empty.key:1: there is no private key"),
        (encrypted, "encrypted.key:1: the private key is encrypted"),
        (der, "der.key:1: this is no text, and PEM is"),
        (certificate.clone(), "one.pem:1: there is no private key"),
    ]
    .map(|(key, told)| (certificate.clone(), key, told))
    .into()
}

fn broken_chains(authority: &Authority) -> Vec<Pair> {
    let (certificate, key) = (authority.text("one.pem"), authority.text("one.key"));
    let read = |name: &str| fs::read_to_string(authority.path(name)).unwrap();
    let turned = read("root.pem") + &read("one.pem");
    let to_der = ["x509", "-in", &certificate, "-outform", "DER"];
    let der = made_by_openssl(authority, &to_der, "der.pem");
    let turned = written(authority, "turned.pem", &turned);
    let empty = written(authority, "empty.pem", "");
    let text = written(authority, "text.pem", "hello\n");
    [
        (turned, "one.key:1: the key is not that of"),
        (empty, "empty.pem:1: there is no certificate"),
        (text, "text.pem:1: there is no certificate"),
        (der, "der.pem:1: this is no text, and PEM is"),
        (authority.text(""), "Is a directory"),
        (key.clone(), "one.key:1: there is no certificate"),
    ]
    .map(|(chain, told)| (chain, key.clone(), told))
    .into()
}

fn written(authority: &Authority, name: &str, text: &str) -> String {
    fs::write(authority.path(name), text).unwrap();
    authority.text(name)
}

fn made_by_openssl(authority: &Authority, arguments: &[&str], name: &str) -> String {
    let mut openssl = tools::bounded(tools::system("openssl"), DEADLINE);
    let file = authority.text(name);
    tools::run(openssl.args(arguments).args(["-out", &file])).expect_success("openssl");
    file
}

#[test]
fn broken_certificates_are_told_before_anything_starts() {
    let authority = Authority::new();
    for (certificate, key, told) in broken(&authority) {
        let flags = ["serve", "--cert", &certificate, "--key", &key];
        let ended = output(&flags);
        let message = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(2), "{message}");
        assert!(message.contains(told), "{message}");
    }
}

#[test]
fn broken_certificates_of_a_reload_are_told_and_not_used() {
    let authority = Authority::new();
    authority.issue("server", NAME);
    let server = serve(&authority.flags("server"));
    let first = serial(&authority, &server);
    for (certificate, key, told) in broken(&authority) {
        // What is told names the files that the server was started with.
        let (_, fault) = told.split_once(": ").unwrap_or(("", told));
        for (from, to) in [(certificate, "server.pem"), (key, "server.key")] {
            let to = authority.path(to);
            let _missing = fs::remove_file(&to).or_else(|_| fs::remove_dir(&to));
            if Path::new(&from).is_dir() {
                fs::create_dir(&to).unwrap();
            } else if Path::new(&from).exists() {
                fs::copy(&from, &to).unwrap();
            }
        }
        server.signal(Signal::HUP);
        let line = server.wait_for_log("the certificates stay what they were");
        assert!(line.contains(fault), "{line} instead of {told}");
        assert_eq!(serial(&authority, &server), first);
    }
}

#[test]
fn clients_are_sent_on_from_http() {
    let authority = Authority::new();
    authority.issue("server", NAME);
    let mut flags = authority.flags("server");
    flags.extend(["--listen-redirecting".to_owned(), "127.0.0.1:0".to_owned()]);
    let server = serve(&flags);
    let plain = server.wait_for_log("listening");
    let plain = plain.split("http://").nth(1).expect("a URL without TLS");
    let plain = plain.trim_end_matches(['"', '}', '\n']);
    let (_, port) = server.address.split_once(':').expect("a port");
    let mut curl = tools::bounded(tools::system("curl"), DEADLINE);
    curl.args(["--silent", "--location", "--cacert"])
        .arg(authority.path("root.pem"))
        .args(["--resolve", &format!("{NAME}:{port}:127.0.0.1")])
        .args([
            "--header",
            &format!("Host: {NAME}"),
            "--write-out",
            "%{url_effective}",
        ])
        .args(["--dump-header", "-"])
        .arg(format!("http://{plain}/hello"));
    let told = tools::run(&mut curl).expect_success("curl").stdout;
    assert!(told.contains("HTTP/1.1 308 Permanent Redirect"), "{told}");
    assert!(
        told.contains("strict-transport-security: max-age=31536000"),
        "{told}"
    );
    let end = format!("Hello, world!\nhttps://{NAME}:{port}/hello");
    assert!(told.ends_with(&end), "{told}");
}

#[test]
fn an_application_in_perl_learns_of_tls_and_of_the_client() {
    let authority = Authority::new();
    authority.issue("server", NAME);
    authority.issue("client", "client.test");
    let mut flags = authority.flags("server");
    let application = r#"sub { my $e = shift;
        my $told = join " ", map { $_ // "-" } @$e{qw(psgi.url_scheme HTTPS SSL_PROTOCOL
            SSL_CIPHER SSL_TLS_SNI SSL_CLIENT_VERIFY)};
        [200, ["Content-Type", "text/plain"], [$told, "\n", $e->{SSL_CLIENT_CERT} // ""]] }"#;
    let more = [
        "--client-ca",
        &authority.text("root.pem"),
        "--client-cert-optional",
    ];
    flags.extend(more.map(str::to_owned));
    flags.extend(["-e".to_owned(), application.to_owned()]);
    let server = start_in_environment(&flags);
    let told = curl(&authority, &server, &[], "/")
        .expect_success("curl")
        .stdout;
    assert_eq!(
        told,
        "https on TLSv1.3 TLS_AES_128_GCM_SHA256 server.test NONE\n"
    );
    let (certificate, key) = (authority.text("client.pem"), authority.text("client.key"));
    let shown = ["--cert", &certificate, "--key", &key];
    let told = curl(&authority, &server, &shown, "/")
        .expect_success("curl")
        .stdout;
    let (told, shown) = told.split_once('\n').expect("two parts");
    assert_eq!(
        told,
        "https on TLSv1.3 TLS_AES_128_GCM_SHA256 server.test SUCCESS"
    );
    let expected = fs::read_to_string(&certificate)
        .unwrap()
        .replace("\r\n", "\n");
    assert_eq!(shown, expected);
}

/// Perl finds its modules by the environment of the test.
fn start_in_environment(flags: &[String]) -> Running {
    let mut arguments = vec!["serve", "--listen", "127.0.0.1:0"];
    arguments.extend(flags.iter().map(String::as_str));
    let mut command = command(&arguments);
    command.envs(std::env::vars_os());
    Running::start(&mut command)
}

#[test]
fn nobody_renegotiates() {
    let authority = Authority::new();
    authority.issue("server", NAME);
    let server = serve(&authority.flags("server"));
    let mut client = tools::bounded(tools::system("openssl"), DEADLINE)
        .args(["s_client", "-tls1_2", "-connect", &server.address])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("openssl starts");
    // A line of R asks for it.
    client.stdin.take().unwrap().write_all(b"R\n").unwrap();
    let ended = client.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&ended.stderr);
    assert!(
        told.contains("RENEGOTIATING") && told.contains("no renegotiation"),
        "{told}"
    );
    let hello = curl(&authority, &server, &[], "/hello").expect_success("curl");
    assert_eq!(hello.stdout, "Hello, world!\n");
}

#[test]
fn a_proxy_announces_its_client_before_tls() {
    let authority = Authority::new();
    authority.issue("server", NAME);
    let mut flags = authority.flags("server");
    flags.extend(["--proxy-protocol", "--trusted-proxy", "127.0.0.1"].map(str::to_owned));
    let server = serve(&flags);
    for protocol in ["--http1.1", "--http2"] {
        let announced = [protocol, "--haproxy-protocol"];
        let hello = curl(&authority, &server, &announced, "/hello").expect_success("curl");
        assert_eq!(hello.stdout, "Hello, world!\n");
    }
    let unannounced = curl(&authority, &server, &[], "/hello");
    assert!(!unannounced.succeeded, "{}", unannounced.stdout);
}

#[test]
fn a_file_of_sites_speaks_tls_by_the_same_keys() {
    let authority = Authority::new();
    authority.issue("server", NAME);
    let file = |certificate: &str| {
        let text = format!(
            "[server]\nlisten = [\"127.0.0.1:0\"]\ncert = [\"{certificate}\"]\n\
            key = [\"server.key\"]\n\n[[site]]\nhosts = [\"{NAME}\"]\n\
            [[site.route]]\npath = \"/\"\nrespond = {{ body = \"of a site\" }}\n"
        );
        fs::write(authority.path("sites.toml"), text).unwrap();
        authority.text("sites.toml")
    };
    let server = Running::start(&mut command(&["serve", &file("server.pem")]));
    let told = curl(&authority, &server, &[], "/")
        .expect_success("curl")
        .stdout;
    assert_eq!(told, "of a site");
    let ended = output(&["serve", &file("server.key")]);
    let message = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(2), "{message}");
    assert!(
        message.contains("server.key:1: there is no certificate"),
        "{message}"
    );
}

/// The judgement of testssl.sh. It takes minutes: `make tls-judges`.
#[test]
#[ignore = "takes minutes: make tls-judges"]
fn testssl_finds_nothing() {
    let authority = Authority::new();
    authority.issue("server", NAME);
    let server = serve(&authority.flags("server"));
    let report = authority.path("report.csv");
    let mut testssl = tools::bounded(tools::system("testssl"), Duration::from_mins(15));
    testssl
        .args(["--quiet", "--color", "0", "--csvfile"])
        .arg(&report)
        .arg("--add-ca")
        .arg(authority.path("root.pem"))
        .arg(format!("https://{}", server.address));
    let told = tools::run(&mut testssl).stdout;
    let report = fs::read_to_string(&report).expect("there is a report");
    let unsound: Vec<&str> = report.lines().filter(|line| is_unsound(line)).collect();
    assert!(unsound.is_empty(), "{unsound:#?}\n{told}");
}

/// Findings that are about the test's certificate and name are none, nor is that of tickets: its
/// client leaves before those of TLS 1.3 come.
fn is_unsound(line: &str) -> bool {
    let is_finding = [
        "\"LOW\"",
        "\"MEDIUM\"",
        "\"HIGH\"",
        "\"CRITICAL\"",
        "\"WARN\"",
    ]
    .iter()
    .any(|severity| line.contains(severity));
    let explained = [
        "cert_",
        "DNS_CAArecord",
        "OCSP_stapling",
        "scanTime",
        "HSTS",
        "banner_",
        "overall_grade",
        "grade_cap",
        "rating",
        "engine_problem",
        "sessionresumption_ticket",
    ];
    is_finding
        && !explained
            .iter()
            .any(|id| line.starts_with(&format!("\"{id}")))
}

#[test]
fn a_killed_client_leaves_nothing_behind() {
    let authority = Authority::new();
    authority.issue("server", NAME);
    let server = serve(&authority.flags("server"));
    let descriptors = || fs::read_dir(Path::new("/proc").join(server.pid().to_string()).join("fd"));
    let mut client = Command::new(tools::system("openssl"))
        .args(["s_client", "-quiet", "-connect", &server.address])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("openssl starts");
    let request = b"GET /hello HTTP/1.1\r\nHost: a\r\n\r\n";
    client.stdin.as_mut().unwrap().write_all(request).unwrap();
    let mut response = [0; 4];
    client
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut response)
        .unwrap();
    let open = descriptors().unwrap().count();
    client.kill().unwrap();
    client.wait().unwrap();
    while descriptors().unwrap().count() >= open {
        std::thread::park_timeout(Duration::from_millis(5));
    }
}
