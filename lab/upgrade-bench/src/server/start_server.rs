//! Servers of the PSGI application under `start_server`: SIGHUP.

use std::process::Command;

use nix::sys::signal::Signal;

use super::process::{Family, signal};
use super::{Place, Server, UPGRADE_MAX, application};
use crate::server::greenroom::WORKERS;

/// A worker for each connection, and some to spare: Starman serves one connection at a time with
/// each.
const STARMAN_WORKERS: &str = "64";
/// The line that `start_server` logs when the new processes serve and the old ones are told to end.
const REPLACED: &str = "new worker is now running";

pub(super) struct StartServer(Family);

impl StartServer {
    /// As `perldoc starman` says under "SIGNALS".
    pub(super) fn starman(place: &Place) -> anyhow::Result<Self> {
        let mut command = command(place);
        command
            .args(["--signal-on-hup=QUIT", "--signal-on-term=QUIT", "--"])
            .args(["starman", "-E", "deployment", "--workers", STARMAN_WORKERS])
            .args(["--preload-app"])
            .arg(application());
        Ok(Self(Family::start(command, &place.file("log"))?))
    }

    pub(super) fn greenroom(place: &Place) -> anyhow::Result<Self> {
        let mut command = command(place);
        command
            .arg("--")
            .arg(&place.greenroom)
            .args(["serve", "--workers", WORKERS, "--no-access-log"])
            .args(["--drain-deadline", "60s"])
            .arg(application());
        Ok(Self(Family::start(command, &place.file("log"))?))
    }
}

fn command(place: &Place) -> Command {
    let mut command = Command::new("start_server");
    command.arg(format!("--port={}", place.target.plain));
    command.arg("--interval=5");
    command
}

impl Server for StartServer {
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
