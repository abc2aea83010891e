//! Pebble as the authority, and servers that it can ask.

use std::fs::{self, File};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;

use crate::outside::tools;
use crate::ports::free_port;
use crate::program::{self, Running};

const DEADLINE: Duration = Duration::from_mins(2);
pub(crate) const NAME: &str = "www.example.org";

/// Pebble, and a DNS server that says of all names that they are at 127.0.0.1.
pub(crate) struct Authority {
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
    pub(crate) fn start() -> Self {
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
        let names = start(&mut names, dns, Stdio::null());
        let mut pebble = pebble("pebble");
        pebble
            .arg("-config")
            .arg(file("config.json"))
            .args(["-dnsserver", &format!("127.0.0.1:{dns}")])
            .env("PEBBLE_VA_NOSLEEP", "1");
        let log = File::create(file("pebble.log")).unwrap();
        let pebble = start(&mut pebble, management, log.into());
        Self {
            port,
            management,
            http_port,
            tls_port,
            _processes: [names, pebble],
            directory,
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Starts a server for [`NAME`] where the authority looks for it.
    pub(crate) fn serve(&self) -> Running {
        let flags = self.flags();
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        Running::start(&mut program::command(&[&["serve"], &flags[..]].concat()))
    }

    /// Returns the flags of such a server.
    pub(crate) fn flags(&self) -> Vec<String> {
        self.flags_for(&self.path("storage"))
    }

    /// Returns them for certificates in this directory.
    pub(crate) fn flags_for(&self, storage: &Path) -> Vec<String> {
        let file = |name| self.path(name).display().to_string();
        let (https, http, port) = (self.tls_port, self.http_port, self.port);
        let flags = [
            ("--listen", format!("127.0.0.1:{https}")),
            ("--domain", NAME.to_owned()),
            ("--listen-redirecting", format!("127.0.0.1:{http}")),
            ("--acme-directory", format!("https://127.0.0.1:{port}/dir")),
            ("--acme-root", file("root.pem")),
            ("--acme-storage", storage.display().to_string()),
        ];
        let flags = flags.into_iter();
        flags
            .map(|(flag, value)| format!("{flag}={value}"))
            .collect()
    }

    /// Returns how many lines of its log tell of such a thing: `Added order`, for one.
    pub(crate) fn logged(&self, what: &str) -> usize {
        let log = fs::read_to_string(self.path("pebble.log")).unwrap();
        log.lines().filter(|line| line.contains(what)).count()
    }

    /// Writes the root of the certificates that the authority gives.
    pub(crate) fn write_issued_root(&self) {
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
    pub(crate) fn hello(&self) -> String {
        let asked = tools::run(&mut self.client(NAME));
        asked.expect_success("curl").stdout
    }

    /// Returns a client that trusts the authority, and is to ask this host for `/hello`.
    pub(crate) fn client(&self, name: &str) -> Command {
        let mut curl = tools::bounded(tools::system("curl"), DEADLINE);
        curl.args(["--silent", "--show-error", "--cacert"])
            .arg(self.path("issued.pem"))
            .args(["--resolve", &format!("{name}:{}:127.0.0.1", self.tls_port)])
            .arg(format!("https://{name}:{}/hello", self.tls_port));
        curl
    }

    /// Writes a file of one site with these hosts, and returns its path.
    pub(crate) fn write_site(&self, hosts: &[&str]) -> PathBuf {
        self.write_site_with("", hosts)
    }

    /// Writes one that sets this of the server, too.
    pub(crate) fn write_site_with(&self, server: &str, hosts: &[&str]) -> PathBuf {
        let file = self.path("greenroom.toml");
        let (https, http, port) = (self.tls_port, self.http_port, self.port);
        let text = format!(
            "[server]\nlisten = \"127.0.0.1:{https}\"\n\
             listen_redirecting = \"127.0.0.1:{http}\"\nautomatic_certificates = true\n\
             acme_directory = \"https://127.0.0.1:{port}/dir\"\nacme_root = \"root.pem\"\n\
             acme_storage = \"storage\"\n{server}[[site]]\nhosts = {hosts:?}\n[[site.route]]\n\
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
fn start(command: &mut Command, port: u16, log: Stdio) -> Ended {
    let process = command
        .stdin(Stdio::null())
        .stdout(log)
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
