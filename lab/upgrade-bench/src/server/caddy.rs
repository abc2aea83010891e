//! Caddy: `caddy reload`, which replaces what is in force within one process.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;

use bench_kit::process::free_address;

use super::process::{Family, run};
use super::{Place, Server, UPGRADE_MAX};

pub(super) struct Caddy {
    family: Family,
    configuration: PathBuf,
    admin: SocketAddr,
}

impl Caddy {
    pub(super) fn start(place: &Place) -> anyhow::Result<Self> {
        let configuration = place.file("Caddyfile");
        let admin = free_address()?;
        fs::write(&configuration, text(place, admin))?;
        let mut command = Command::new("caddy");
        for variable in ["HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"] {
            command.env(variable, place.directory.path());
        }
        command
            .args(["run", "--adapter", "caddyfile", "--config"])
            .arg(&configuration);
        Ok(Self {
            family: Family::start(command, &place.file("log"))?,
            configuration,
            admin,
        })
    }
}

impl Server for Caddy {
    fn upgrade(&mut self) -> anyhow::Result<()> {
        let mut command = Command::new("caddy");
        command
            .args(["reload", "--force", "--adapter", "caddyfile"])
            .args(["--address", &self.admin.to_string(), "--config"])
            .arg(&self.configuration);
        run(command, UPGRADE_MAX)
    }

    fn family(&mut self) -> &mut Family {
        &mut self.family
    }
}

fn text(place: &Place, admin: SocketAddr) -> String {
    let (plain, tls, upstream) = (place.target.plain, place.target.tls, place.upstream);
    let directory = place.directory.path().display();
    let bind = plain.ip();
    format!(
        "{{\n\tadmin {admin}\n\tauto_https off\n\tservers {{\n\t\tprotocols h1 h2 h3\n\t}}\n}}\n\
         http://{plain} {{\n\tbind {bind}\n\treverse_proxy {upstream}\n}}\n\
         https://{tls} {{\n\tbind {bind}\n\ttls {directory}/certificate.pem {directory}/key.pem\n\
         \treverse_proxy {upstream}\n}}\n"
    )
}
