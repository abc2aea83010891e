//! The servers: how each is set up, started, and upgraded.

mod caddy;
mod greenroom;
mod haproxy;
mod nginx;
mod process;
mod start_server;

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Context as _;
use bench_kit::lab_directory;
use bench_kit::process::free_address;
use bench_kit::tools::is_installed;
use clap::ValueEnum;
use tempfile::TempDir;

use crate::client::{Kind, Target};
use greenroom::{Application, Greenroom, Trouble};
use process::Family;
use start_server::StartServer;

/// The longest time until a new version serves.
const UPGRADE_MAX: Duration = Duration::from_mins(1);
const NAMES: [&str; 2] = ["localhost", "127.0.0.1"];

/// A server, and a way to upgrade it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Contestant {
    Greenroom,
    GreenroomSites,
    GreenroomPsgi,
    GreenroomCrashes,
    GreenroomHangs,
    GreenroomMissing,
    NginxReload,
    NginxBinary,
    Haproxy,
    Caddy,
    Starman,
    GreenroomStarted,
}

/// A running server.
pub(crate) trait Server {
    /// Upgrades it, and returns when the new version serves, or, where that cannot start, when it
    /// was shown that the old one goes on.
    ///
    /// # Errors
    /// If it does not.
    fn upgrade(&mut self) -> anyhow::Result<()>;

    /// Shows, after the last upgrade, what is left to show.
    ///
    /// # Errors
    /// If it is not so.
    fn finish(&mut self) -> anyhow::Result<()> {
        Ok(())
    }

    /// Returns its processes.
    fn family(&mut self) -> &mut Family;
}

/// The place of one server: its addresses, its certificate, and a directory for what it writes.
pub(crate) struct Place {
    pub(crate) target: Target,
    upstream: SocketAddr,
    directory: TempDir,
    greenroom: PathBuf,
}

impl Contestant {
    /// Returns the name in the tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Greenroom => "Greenroom, demo",
            Self::GreenroomSites => "Greenroom, sites",
            Self::GreenroomPsgi => "Greenroom, PSGI",
            Self::GreenroomCrashes => "Greenroom, new version crashes",
            Self::GreenroomHangs => "Greenroom, new version hangs",
            Self::GreenroomMissing => "Greenroom, no new version",
            Self::NginxReload => "nginx -s reload",
            Self::NginxBinary => "nginx USR2, WINCH, QUIT",
            Self::Haproxy => "HAProxy USR2",
            Self::Caddy => "caddy reload",
            Self::Starman => "Starman, start_server HUP",
            Self::GreenroomStarted => "Greenroom, start_server HUP",
        }
    }

    /// Tells whether it is Greenroom.
    pub(crate) fn is_ours(self) -> bool {
        self == Self::GreenroomStarted || self.program() == "greenroom"
    }

    /// Tells whether it serves this kind of client.
    pub(crate) fn serves(self, kind: Kind) -> bool {
        let speaks_tls = !matches!(self, Self::Starman | Self::GreenroomStarted);
        let has_psgi = matches!(
            self,
            Self::Starman | Self::GreenroomStarted | Self::GreenroomSites | Self::GreenroomPsgi
        );
        let has_http3 = speaks_tls && !matches!(self.program(), "nginx" | "haproxy");
        let has_websockets = speaks_tls && self != Self::GreenroomPsgi;
        match kind {
            Kind::Tls | Kind::Http2 => speaks_tls,
            Kind::Http3 | Kind::Http3Downloads => has_http3,
            Kind::Websocket => has_websockets,
            Kind::Psgi => has_psgi,
            _ => true,
        }
    }

    /// Tells whether it is on this machine.
    pub(crate) fn is_here(self) -> bool {
        match self {
            Self::Starman => is_installed("start_server") && is_installed("starman"),
            _ => self.program() == "greenroom" || is_installed(self.program()),
        }
    }

    /// Returns its version in its own words.
    pub(crate) fn version(self) -> Option<String> {
        let flag = match self {
            Self::NginxReload | Self::Haproxy => "-v",
            Self::Caddy => "version",
            Self::Starman => "--version",
            _ => return None,
        };
        let program = if self == Self::Starman {
            "starman"
        } else {
            self.program()
        };
        let output = Command::new(program).arg(flag).output().ok()?;
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        let line = text.lines().next()?.trim();
        Some(if self == Self::Caddy {
            format!("Caddy {line}")
        } else {
            line.to_owned()
        })
    }

    fn program(self) -> &'static str {
        match self {
            Self::NginxReload | Self::NginxBinary => "nginx",
            Self::Haproxy => "haproxy",
            Self::Caddy => "caddy",
            Self::Starman | Self::GreenroomStarted => "start_server",
            _ => "greenroom",
        }
    }

    /// Starts it and waits until it listens.
    ///
    /// # Errors
    /// If it does not.
    pub(crate) fn start(self, place: &Place) -> anyhow::Result<Box<dyn Server>> {
        let ours = |application, trouble| Greenroom::start(place, application, trouble);
        let mut server: Box<dyn Server> = match self {
            Self::Greenroom => Box::new(ours(Application::Demo, None)?),
            Self::GreenroomSites => Box::new(ours(Application::Sites, None)?),
            Self::GreenroomPsgi => Box::new(ours(Application::Psgi, None)?),
            Self::GreenroomCrashes => Box::new(ours(Application::Demo, Some(Trouble::Crashes))?),
            Self::GreenroomHangs => Box::new(ours(Application::Demo, Some(Trouble::Hangs))?),
            Self::GreenroomMissing => Box::new(ours(Application::Demo, Some(Trouble::Missing))?),
            Self::NginxReload => Box::new(nginx::Nginx::start(place, false)?),
            Self::NginxBinary => Box::new(nginx::Nginx::start(place, true)?),
            Self::Haproxy => Box::new(haproxy::Haproxy::start(place)?),
            Self::Caddy => Box::new(caddy::Caddy::start(place)?),
            Self::Starman => Box::new(StartServer::starman(place)?),
            Self::GreenroomStarted => Box::new(StartServer::greenroom(place)?),
        };
        let Target { plain, tls, .. } = place.target;
        let addresses = if self.serves(Kind::Tls) {
            vec![plain, tls]
        } else {
            vec![plain]
        };
        server.family().wait_until("listening", UPGRADE_MAX, |_| {
            addresses
                .iter()
                .all(|address| TcpStream::connect(address).is_ok())
        })?;
        Ok(server)
    }
}

impl Place {
    /// Makes a place with a certificate, for one server.
    ///
    /// # Errors
    /// If there is no room or no free port.
    pub(crate) fn new(
        contestant: Contestant,
        upstream: SocketAddr,
        greenroom: &Path,
    ) -> anyhow::Result<Self> {
        let place = Self {
            target: Target {
                plain: free_address()?,
                tls: free_address()?,
                psgi: if contestant == Contestant::GreenroomSites {
                    "/psgi"
                } else {
                    ""
                },
            },
            upstream,
            directory: tempfile::tempdir().context("a directory for a server")?,
            greenroom: greenroom.to_owned(),
        };
        let made = rcgen::generate_simple_self_signed(NAMES.map(str::to_owned))?;
        fs::write(place.certificate(), made.cert.pem())?;
        fs::write(place.key(), made.signing_key.serialize_pem())?;
        Ok(place)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn certificate(&self) -> PathBuf {
        self.file("certificate.pem")
    }

    fn key(&self) -> PathBuf {
        self.file("key.pem")
    }
}

/// Returns the PSGI application.
fn application() -> PathBuf {
    lab_directory().join("upgrade-bench/upgrade.psgi")
}
