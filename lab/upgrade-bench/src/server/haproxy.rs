//! `HAProxy` with a master and its workers: SIGUSR2.

use std::fs;
use std::process::Command;

use nix::sys::signal::Signal;

use super::process::{Family, signal};
use super::{Place, Server, UPGRADE_MAX};

pub(super) struct Haproxy(Family);

impl Haproxy {
    pub(super) fn start(place: &Place) -> anyhow::Result<Self> {
        let configuration = place.file("haproxy.cfg");
        fs::write(&configuration, text(place))?;
        let certificate = fs::read_to_string(place.certificate())?;
        let key = fs::read_to_string(place.key())?;
        fs::write(place.file("both.pem"), certificate + &key)?;
        let mut command = Command::new("haproxy");
        command.args(["-W", "-db", "-f"]).arg(configuration);
        Ok(Self(Family::start(command, &place.file("log"))?))
    }
}

impl Server for Haproxy {
    fn upgrade(&mut self) -> anyhow::Result<()> {
        let master = self.0.first();
        let before = self.0.children(master);
        signal(master, Signal::SIGUSR2)?;
        // It tells its old worker to finish once the new one is ready.
        self.0.wait_until("a new worker", UPGRADE_MAX, |family| {
            family
                .children(master)
                .iter()
                .any(|pid| !before.contains(pid))
        })
    }

    fn family(&mut self) -> &mut Family {
        &mut self.0
    }
}

/// The option leaves idle connections open during a reload, until they had one more request: the
/// documentation advises it where clients do not send again.
fn text(place: &Place) -> String {
    let (plain, tls) = (place.target.plain, place.target.tls);
    let directory = place.directory.path().display();
    let upstream = place.upstream;
    format!(
        "global\n    maxconn 1024\n\
         stats socket {directory}/haproxy.sock mode 600 level admin expose-fd listeners\n\
         defaults\n    mode http\n    timeout connect 5s\n    timeout client 60s\n\
         timeout server 60s\n    timeout tunnel 1h\n\
         frontend front\n    option idle-close-on-response\n    bind {plain}\n\
         bind {tls} ssl crt {directory}/both.pem alpn h2,http/1.1\n    default_backend behind\n\
         backend behind\n    server upstream {upstream}\n"
    )
}
