//! The servers of TLS cases, and the certificate that they share.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use bench_kit::lab_directory;
use bench_kit::process::{Server, free_address};
use bench_kit::tools::is_installed;
use tempfile::TempDir;

use crate::cases::Context;
use crate::cases::contestant::{Contestant, present};

pub(super) const GREENROOM: &str = "Greenroom";
pub(super) const GREENROOM_RING: &str = "Greenroom with ring";
/// The server whose CPU time is 1.
pub(super) const HYPER: &str = "hyper + tokio-rustls";
const PATH: &str = "/hello";
/// Attempts at a start: another program may take an address before the server does.
const STARTS_MAX: usize = 3;
const NAMES: [&str; 2] = ["localhost", "127.0.0.1"];

/// A certificate with its key, on a curve of 256 bits, and room for what servers write.
pub(super) struct Site(TempDir);

/// A server that listens over TLS and without.
pub(super) struct Running {
    server: Server,
    plain: SocketAddr,
}

impl Site {
    pub(super) fn new() -> anyhow::Result<Self> {
        let site = Self(tempfile::tempdir().context("a directory for certificates")?);
        let made = rcgen::generate_simple_self_signed(NAMES.map(str::to_owned))?;
        fs::write(site.certificate(), made.cert.pem())?;
        fs::write(site.key(), made.signing_key.serialize_pem())?;
        Ok(site)
    }

    /// Returns the servers that take part, and a note for each that is not installed.
    pub(super) fn servers(
        &self,
        context: &Context,
    ) -> anyhow::Result<(Vec<Contestant>, Vec<String>)> {
        let mut servers = vec![
            self.built("greenroom-tls").named(GREENROOM),
            self.built("hyper-tls").named(HYPER),
        ];
        let mut notes = Vec::new();
        for (program, name) in [("nginx", "nginx"), ("caddy", "Caddy")] {
            if is_installed(program) {
                servers.push(self.found(program)?.named(name));
            } else {
                notes.push(format!("LEFT OUT, as it is not here: {name}"));
            }
        }
        Ok((present(servers, context), notes))
    }

    /// Returns Greenroom with the cryptography of ring, if Greenroom takes part.
    pub(super) fn with_ring(&self, context: &Context) -> Vec<Contestant> {
        let server = self.built("greenroom-tls").arguments(["--ring"]);
        present(vec![server.named(GREENROOM_RING)], context)
    }

    fn built(&self, program: &'static str) -> Contestant {
        let (certificate, key) = (text(&self.certificate()), text(&self.key()));
        Contestant::new(program, PATH)
            .arguments(["--certificate", &certificate, "--key", &key])
            .listening_by("--tls")
    }

    /// A program of the distribution, started by its script.
    fn found(&self, program: &str) -> anyhow::Result<Contestant> {
        let directory = self.0.path().join(program);
        fs::create_dir_all(&directory)?;
        let script = format!("http-bench/standins/tls-{program}.sh");
        let arguments = [directory, self.certificate(), self.key()].map(|path| text(&path));
        Ok(Contestant::at(lab_directory().join(script), PATH)
            .arguments(arguments)
            .listening_by("--tls"))
    }

    fn certificate(&self) -> PathBuf {
        self.0.path().join("certificate.pem")
    }

    fn key(&self) -> PathBuf {
        self.0.path().join("key.pem")
    }
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

impl Running {
    pub(super) fn start(contestant: &Contestant, context: &Context) -> anyhow::Result<Self> {
        for _ in 1..STARTS_MAX {
            match Self::try_start(contestant, context) {
                Ok(running) => return Ok(running),
                Err(error) => eprintln!("starting it again: {error:#}"),
            }
        }
        Self::try_start(contestant, context)
    }

    fn try_start(contestant: &Contestant, context: &Context) -> anyhow::Result<Self> {
        let plain = free_address()?;
        let launch = contestant.launch(context)?;
        let launch = launch.arguments(["--plain".to_owned(), plain.to_string()]);
        let server = launch.second_address(plain).start()?;
        Ok(Self { server, plain })
    }

    pub(super) fn pid(&self) -> u32 {
        self.server.pid()
    }

    pub(super) fn https(&self) -> String {
        format!("https://{}{PATH}", self.server.address())
    }

    pub(super) fn http(&self) -> String {
        format!("http://{}{PATH}", self.plain)
    }
}
