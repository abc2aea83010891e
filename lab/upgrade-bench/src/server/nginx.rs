//! nginx: `-s reload`, and another binary by SIGUSR2, SIGWINCH and SIGQUIT.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::Signal;

use super::process::{Family, found, is_alive, read_pid, run, signal};
use super::{Place, Server, UPGRADE_MAX};

/// The time after which an old binary's last client must have left: that of a transfer, and more.
const OLD_MAX: Duration = Duration::from_mins(2);

pub(super) struct Nginx {
    family: Family,
    program: PathBuf,
    configuration: PathBuf,
    pid: PathBuf,
    by_binary: bool,
    old: Option<u32>,
}

impl Nginx {
    pub(super) fn start(place: &Place, by_binary: bool) -> anyhow::Result<Self> {
        let program = found("nginx")?;
        let configuration = place.file("nginx.conf");
        fs::write(&configuration, text(place))?;
        let mut nginx = Self {
            family: Family::start(command(&program, &configuration), &place.file("log"))?,
            program,
            configuration,
            pid: place.file("nginx.pid"),
            by_binary,
            old: None,
        };
        let pid = nginx.pid.clone();
        let is_there = |_: &mut Family| read_pid(&pid).is_ok();
        nginx
            .family
            .wait_until("nginx' pid file", UPGRADE_MAX, is_there)?;
        // A master in the foreground, whose parent stays, would begin no upgrade of its binary.
        nginx.family.follow(read_pid(&nginx.pid)?);
        Ok(nginx)
    }

    fn reload(&mut self) -> anyhow::Result<()> {
        let master = read_pid(&self.pid)?;
        let before = self.family.children(master);
        let mut reload = command(&self.program, &self.configuration);
        reload.args(["-s", "reload"]);
        run(reload, UPGRADE_MAX)?;
        self.family
            .wait_until("new workers", UPGRADE_MAX, |family| {
                family
                    .children(master)
                    .iter()
                    .any(|pid| !before.contains(pid))
            })
    }

    /// As nginx' documentation says under "Upgrading Executable on the Fly". A master begins
    /// another upgrade only after the one before it has ended.
    fn exchange(&mut self) -> anyhow::Result<()> {
        if let Some(old) = self.old.take() {
            let what = "the end of the old master";
            self.family.wait_until(what, OLD_MAX, |family| {
                family.size();
                !is_alive(old)
            })?;
        }
        let master = read_pid(&self.pid)?;
        signal(master, Signal::SIGUSR2)?;
        let pid = self.pid.clone();
        self.family
            .wait_until("a new master with workers", UPGRADE_MAX, |family| {
                let new = read_pid(&pid).ok().filter(|new| *new != master);
                new.is_some_and(|new| !family.children(new).is_empty())
            })?;
        signal(master, Signal::SIGWINCH)?;
        signal(master, Signal::SIGQUIT)?;
        self.old = Some(master);
        Ok(())
    }
}

impl Server for Nginx {
    fn upgrade(&mut self) -> anyhow::Result<()> {
        if self.by_binary {
            self.exchange()
        } else {
            self.reload()
        }
    }

    fn family(&mut self) -> &mut Family {
        &mut self.family
    }
}

fn command(program: &Path, configuration: &Path) -> Command {
    let mut command = Command::new(program);
    command.arg("-c").arg(configuration);
    command
}

fn text(place: &Place) -> String {
    let Place {
        target,
        upstream,
        directory,
        ..
    } = place;
    let (plain, tls, directory) = (target.plain, target.tls, directory.path().display());
    format!(
        "user root;\nworker_processes auto;\npid {directory}/nginx.pid;\n\
         error_log {directory}/log notice;\nevents {{ worker_connections 1024; }}\n\
         http {{\n    access_log off;\n    client_max_body_size 4m;\n    client_body_buffer_size 64k;\n\
         client_body_temp_path {directory}/body;\n    proxy_temp_path {directory}/proxy;\n\
         fastcgi_temp_path {directory}/fastcgi;\n    uwsgi_temp_path {directory}/uwsgi;\n\
         scgi_temp_path {directory}/scgi;\n\
         map $http_upgrade $connection_upgrade {{ default upgrade; '' ''; }}\n\
         upstream behind {{ server {upstream}; keepalive 32; }}\n\
         server {{\n        listen {plain};\n        listen {tls} ssl http2;\n\
         ssl_certificate {directory}/certificate.pem;\n\
         ssl_certificate_key {directory}/key.pem;\n\
         location / {{\n            proxy_pass http://behind;\n\
         proxy_http_version 1.1;\n            proxy_set_header Host $host;\n\
         proxy_set_header Upgrade $http_upgrade;\n\
         proxy_set_header Connection $connection_upgrade;\n        }}\n    }}\n}}\n"
    )
}
