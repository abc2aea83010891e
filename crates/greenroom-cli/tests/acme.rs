//! Certificates that come by themselves: `greenroom serve --domain`, with Pebble as the authority.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod outside;
#[path = "../../greenroom-acme/tests/with_pebble/ports.rs"]
mod ports;
#[allow(dead_code, reason = "these tests use a part of it")]
mod program;

use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use outside::tools;
use ports::free_port;
use program::{Running, output};
use rustix::process::Signal;
use serde_json::json;
use tempfile::TempDir;

const DEADLINE: Duration = Duration::from_mins(2);
const NAME: &str = "www.example.org";

/// Pebble, and a DNS server that says of all names that they are at 127.0.0.1.
struct Authority {
    directory: TempDir,
    port: u16,
    management: u16,
    http_port: u16,
    tls_port: u16,
    _processes: [Ended; 2],
}

/// A process that ends with this.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Authority {
    fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        write_certificates(directory.path());
        let [port, management, http_port, tls_port] = [(); 4].map(|()| free_port());
        let [dns, of_dns] = [(); 2].map(|()| free_port());
        let file = |name| directory.path().join(name);
        let config = json!({ "pebble": {
            "listenAddress": format!("127.0.0.1:{port}"),
            "managementListenAddress": format!("127.0.0.1:{management}"),
            "certificate": file("server.pem"),
            "privateKey": file("server.key"),
            "httpPort": http_port,
            "tlsPort": tls_port,
            "profiles": {
                "default": { "description": "90 days", "validityPeriod": 7_776_000 },
            },
        }});
        fs::write(file("config.json"), config.to_string()).unwrap();
        let mut names = pebble("pebble-challtestsrv");
        names
            .args(["-dnsserver", &format!("127.0.0.1:{dns}")])
            .args(["-management", &format!("127.0.0.1:{of_dns}")])
            .args(["-http01", "", "-https01", "", "-tlsalpn01", "", "-doh", ""])
            .args(["-defaultIPv4", "127.0.0.1", "-defaultIPv6", ""]);
        let names = start(&mut names, dns);
        let mut pebble = pebble("pebble");
        pebble
            .arg("-config")
            .arg(file("config.json"))
            .args(["-dnsserver", &format!("127.0.0.1:{dns}")])
            .env("PEBBLE_VA_NOSLEEP", "1");
        let pebble = start(&mut pebble, management);
        Self {
            port,
            management,
            http_port,
            tls_port,
            _processes: [names, pebble],
            directory,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Starts a server for [`NAME`] where the authority looks for it.
    fn serve(&self) -> Running {
        let https = format!("127.0.0.1:{}", self.tls_port);
        let http = format!("127.0.0.1:{}", self.http_port);
        let directory = format!("https://127.0.0.1:{}/dir", self.port);
        let mut command = program::command(&["serve", "--listen", &https, "--domain", NAME]);
        command
            .args([
                "--listen-redirecting",
                &http,
                "--acme-directory",
                &directory,
            ])
            .arg("--acme-root")
            .arg(self.path("root.pem"))
            .arg("--acme-storage")
            .arg(self.path("storage"));
        Running::start(&mut command)
    }

    /// Writes the root of the certificates that the authority gives.
    fn write_issued_root(&self) {
        let url = format!("https://127.0.0.1:{}/roots/0", self.management);
        let mut curl = tools::bounded(tools::system("curl"), DEADLINE);
        curl.args(["--silent", "--fail", "--cacert"])
            .arg(self.path("root.pem"))
            .arg("--output")
            .arg(self.path("issued.pem"))
            .arg(url);
        tools::run(&mut curl).expect_success("curl");
    }

    /// Asks the server for `/hello`, by a client that trusts the authority.
    fn hello(&self) -> String {
        let asked = tools::run(&mut self.client(NAME));
        asked.expect_success("curl").stdout
    }

    /// Returns a client that trusts the authority, and is to ask this host for `/hello`.
    fn client(&self, name: &str) -> Command {
        let mut curl = tools::bounded(tools::system("curl"), DEADLINE);
        curl.args(["--silent", "--show-error", "--cacert"])
            .arg(self.path("issued.pem"))
            .args(["--resolve", &format!("{name}:{}:127.0.0.1", self.tls_port)])
            .arg(format!("https://{name}:{}/hello", self.tls_port));
        curl
    }

    /// Writes a file of one site with these hosts, and returns its path.
    fn write_site(&self, hosts: &[&str]) -> PathBuf {
        let file = self.path("greenroom.toml");
        let (https, http, port) = (self.tls_port, self.http_port, self.port);
        let text = format!(
            "[server]\nlisten = \"127.0.0.1:{https}\"\n\
             listen_redirecting = \"127.0.0.1:{http}\"\nautomatic_certificates = true\n\
             acme_directory = \"https://127.0.0.1:{port}/dir\"\nacme_root = \"root.pem\"\n\
             acme_storage = \"storage\"\n[[site]]\nhosts = {hosts:?}\n[[site.route]]\n\
             path = \"/\"\nrespond = \"of a site\\n\"\n"
        );
        fs::write(&file, text).unwrap();
        file
    }
}

/// Writes a root, and a certificate of it for the authority's own server.
fn write_certificates(directory: &Path) {
    let mut params = rcgen::CertificateParams::default();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let key = rcgen::KeyPair::generate().unwrap();
    let root = params.self_signed(&key).unwrap().pem();
    let issuer = rcgen::Issuer::new(params, key);
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    params.distinguished_name = rcgen::DistinguishedName::new();
    let server = params.signed_by(&key, &issuer).unwrap().pem();
    fs::write(directory.join("root.pem"), root).unwrap();
    fs::write(directory.join("server.pem"), server).unwrap();
    fs::write(directory.join("server.key"), key.serialize_pem()).unwrap();
}

/// Returns a command that ends with the test's thread, however that ends.
fn pebble(program: &str) -> Command {
    let mut command = Command::new("setpriv");
    let program = tools::installed(&format!("pebble/{program}"));
    command.args(["--pdeathsig", "KILL"]).arg(program);
    command
}

/// Starts a program, and waits until it listens.
fn start(command: &mut Command, port: u16) -> Ended {
    let process = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let process = Ended(process.expect("setpriv of util-linux"));
    let begin = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(begin.elapsed() < DEADLINE, "nobody listens");
        thread::park_timeout(Duration::from_millis(5));
    }
    process
}

#[test]
fn a_name_is_all_that_a_certificate_needs() {
    let authority = Authority::start();
    authority.write_issued_root();
    let server = authority.serve();
    server.wait_for_log("a certificate is obtained");
    assert_eq!(authority.hello(), "Hello, world!\n");
    drop(server);
    // The next one has it from the directory.
    let _server = authority.serve();
    assert_eq!(authority.hello(), "Hello, world!\n");
}

#[test]
fn hosts_of_sites_get_certificates_by_themselves() {
    let authority = Authority::start();
    authority.write_issued_root();
    let file = authority.write_site(&[NAME, "localhost", "*.example.org", "192.0.2.1"]);
    let server = Running::start(&mut program::command(&["serve", file.to_str().unwrap()]));
    server.wait_for_log("a certificate is obtained");
    assert_eq!(authority.hello(), "of a site\n");
    // What a new file adds is obtained, and who is there already loses no request.
    let file = authority.write_site(&["other.example.net", NAME]);
    thread::scope(|scope| {
        let asking = scope.spawn(|| {
            for _ in 0..20 {
                assert_eq!(authority.hello(), "of a site\n");
            }
        });
        server.signal(Signal::HUP);
        let line = server.wait_for_log("a certificate is obtained");
        assert!(line.contains("other.example.net"), "{line}");
        asking.join().unwrap();
    });
    let asked = tools::run(&mut authority.client("other.example.net"));
    assert_eq!(asked.expect_success("curl").stdout, "of a site\n");
    // What a new file has no more gets no certificate, and a wrong file changes nothing.
    authority.write_site(&["other.example.net"]);
    server.signal(Signal::HUP);
    server.wait_for_log("in force");
    let asked = authority.client(NAME).output().unwrap();
    assert_eq!(asked.status.code(), Some(35), "{asked:?}");
    fs::write(&file, "[[sites]]").unwrap();
    server.signal(Signal::HUP);
    server.wait_for_log("stay as they were");
    let asked = tools::run(&mut authority.client("other.example.net"));
    assert_eq!(asked.expect_success("curl").stdout, "of a site\n");
}

#[test]
fn hosts_that_are_no_public_names_get_no_certificates() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("greenroom.toml");
    let text = "[server]\nlisten = \"127.0.0.1:0\"\nautomatic_certificates = true\n\
        acme_storage = \"storage\"\n[[site]]\nhosts = [\"localhost\", \"printer.local\"]\n\
        [[site.route]]\npath = \"/\"\nrespond = \"\"\n";
    fs::write(&file, text).unwrap();
    let ended = output(&["serve", file.to_str().unwrap()]);
    let message = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(2), "{message}");
    assert!(
        message.contains("automatic_certificates: no site has"),
        "{message}"
    );
}

#[test]
fn a_name_that_no_certificate_is_for_is_told_at_once() {
    let storage = tempfile::tempdir().unwrap();
    let storage = storage.path().to_str().unwrap();
    let flags = ["--domain", "*.example.org", "--acme-storage", storage];
    let ended = output(&[&["serve", "--listen", "127.0.0.1:0"], &flags[..]].concat());
    let message = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(2), "{message}");
    assert!(message.contains("*.example.org"), "{message}");
}
