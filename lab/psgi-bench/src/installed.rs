//! The peers that are installed on this machine.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

use crate::peer::Peer;

const VARIABLE: &str = "PERL5LIB";

/// The modules that all applications here need, with their Debian packages.
const NEEDED: [(&str, &str); 3] = [
    ("Plack::Request", "libplack-perl"),
    ("AnyEvent", "libanyevent-perl"),
    ("EV", "libev-perl"),
];

/// The installed peers and their versions.
#[derive(Debug)]
pub(crate) struct Installed {
    /// The library for Feersum's rows, if it has one of its own.
    feersum_lib: Option<OsString>,
    feersum_version: Option<f64>,
    twiggy: bool,
    starman: bool,
    starlet: bool,
}

impl Installed {
    /// Asks Perl for each module.
    pub(crate) fn look(feersum_lib: Option<&Path>) -> anyhow::Result<Self> {
        require_modules(&NEEDED)?;
        let feersum_lib = feersum_lib.map(OsString::from);
        Ok(Self {
            feersum_version: feersum_version(feersum_lib.as_ref()),
            feersum_lib,
            twiggy: has_module("Plack::Handler::Twiggy"),
            starman: has_module("Plack::Handler::Starman"),
            starlet: has_module("Plack::Handler::Starlet"),
        })
    }

    /// Returns the reason why a peer cannot take part, or `None`.
    pub(crate) fn missing(&self, peer: Peer) -> Option<String> {
        let name = peer.name();
        let lacks = |package| {
            Some(format!(
                "{name} is not installed: apt-get install {package}"
            ))
        };
        match peer {
            Peer::Twiggy if !self.twiggy => lacks("twiggy"),
            Peer::Starman if !self.starman => lacks("starman"),
            Peer::Starlet if !self.starlet => lacks("starlet"),
            Peer::Feersum if self.feersum_version.is_none() => lacks("feersum"),
            Peer::FeersumKeepAlive => self.lacks_keep_alive(),
            _ => None,
        }
    }

    fn lacks_keep_alive(&self) -> Option<String> {
        let name = Peer::FeersumKeepAlive.name();
        let remedy = "build Feersum 1.500 or later and say --feersum-lib (README.md says how)";
        match self.feersum_version {
            None => Some(format!("{name} is not installed: {remedy}")),
            Some(version) if version < FEERSUM_KEEP_ALIVE => Some(format!(
                "{name} is not installed: this is Feersum {version:.3}, which closes every \
                 connection; {remedy}"
            )),
            Some(_) => None,
        }
    }

    /// Returns a note on a peer's version.
    pub(crate) fn note(&self, peer: Peer) -> Option<String> {
        let version = self.feersum_version?;
        (peer == Peer::Feersum).then(|| format!("Feersum is version {version:.3}"))
    }

    /// Returns the variable to add to a peer's environment.
    pub(crate) fn environment(&self, peer: Peer) -> Option<(&'static str, OsString)> {
        let is_feersum = matches!(peer, Peer::Feersum | Peer::FeersumKeepAlive);
        let library = self.feersum_lib.clone().filter(|_| is_feersum)?;
        Some((VARIABLE, library))
    }
}

/// The first version of Feersum that keeps connections.
const FEERSUM_KEEP_ALIVE: f64 = 1.5;

fn feersum_version(library: Option<&OsString>) -> Option<f64> {
    let mut perl = Command::new("perl");
    perl.args(["-MPlack::Handler::Feersum", "-e", "print Feersum->VERSION"]);
    perl.envs(library.map(|library| (VARIABLE, library)));
    let told = perl.stderr(Stdio::null()).output().ok()?;
    let told = told.status.success().then_some(told.stdout)?;
    String::from_utf8(told).ok()?.parse().ok()
}

/// Fails, with the remedy, if one of these modules is not installed.
pub(crate) fn require_modules(modules: &[(&str, &str)]) -> anyhow::Result<()> {
    let version = Command::new("perl")
        .arg("-v")
        .stdout(Stdio::null())
        .status();
    version.context("cannot run perl; as root: apt-get install perl")?;
    let missing = modules.iter().filter(|(module, _)| !has_module(module));
    let packages: Vec<&str> = missing.map(|(_, package)| *package).collect();
    ensure!(
        packages.is_empty(),
        "Perl modules are missing; as root: apt-get install {}",
        packages.join(" ")
    );
    Ok(())
}

fn has_module(module: &str) -> bool {
    let mut perl = Command::new("perl");
    perl.args([&format!("-M{module}"), "-e", "1"]);
    let status = perl.stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}
