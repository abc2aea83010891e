//! Starman under `start_server`: SIGHUP.

use std::process::Command;

use nix::sys::signal::Signal;

use super::process::{Family, signal};
use super::{Place, Server, UPGRADE_MAX, application};

/// A worker for each connection, and some to spare: Starman serves one connection at a time with
/// each.
const WORKERS: &str = "64";
/// The line that `start_server` logs when the new processes serve and the old ones are told to end.
const REPLACED: &str = "new worker is now running";

pub(super) struct Starman(Family);

impl Starman {
    pub(super) fn start(place: &Place) -> anyhow::Result<Self> {
        let mut command = Command::new("start_server");
        // As `perldoc starman` says under "SIGNALS".
        command
            .arg(format!("--port={}", place.target.plain))
            .args([
                "--interval=5",
                "--signal-on-hup=QUIT",
                "--signal-on-term=QUIT",
                "--",
            ])
            .args(["starman", "-E", "deployment", "--workers", WORKERS])
            .args(["--preload-app"])
            .arg(application());
        Ok(Self(Family::start(command, &place.file("log"))?))
    }
}

impl Server for Starman {
    fn upgrade(&mut self) -> anyhow::Result<()> {
        let before = self.0.log().matches(REPLACED).count();
        signal(self.0.first(), Signal::SIGHUP)?;
        self.0
            .wait_until("a new generation", UPGRADE_MAX, |family| {
                family.log().matches(REPLACED).count() > before
            })
    }

    fn family(&mut self) -> &mut Family {
        &mut self.0
    }
}
