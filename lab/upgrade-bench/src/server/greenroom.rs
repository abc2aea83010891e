//! Greenroom: `greenroom upgrade`, also where the new version does not start.

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{bail, ensure};

use super::process::{Family, is_alive, read_pid, run};
use super::{Place, Server, UPGRADE_MAX, application};

/// The application that it serves.
#[derive(Clone, Copy, Debug)]
pub(super) enum Application {
    Demo,
    /// As the other proxies: all in front of the upstream, and a PSGI application.
    Sites,
    Psgi,
}

/// A fault of the new version.
#[derive(Clone, Copy, Debug)]
pub(super) enum Trouble {
    Crashes,
    Hangs,
    Missing,
}

pub(super) struct Greenroom {
    family: Family,
    /// The program that is built.
    built: PathBuf,
    /// A link to it, as deployments have one; the server was started by it.
    installed: PathBuf,
    pid: PathBuf,
    trouble: Option<Trouble>,
}

impl Greenroom {
    pub(super) fn start(
        place: &Place,
        application: Application,
        trouble: Option<Trouble>,
    ) -> anyhow::Result<Self> {
        let (installed, pid) = (place.file("greenroom"), place.file("greenroom.pid"));
        symlink(&place.greenroom, &installed)?;
        let mut command = Command::new(&installed);
        command.args(arguments(place, application, &pid)?);
        Ok(Self {
            family: Family::start(command, &place.file("log"))?,
            built: place.greenroom.clone(),
            installed,
            pid,
            trouble,
        })
    }

    /// Upgrades; the pid file must name another process then.
    fn succeed(&self) -> anyhow::Result<()> {
        let old = read_pid(&self.pid)?;
        run(self.command(), UPGRADE_MAX)?;
        let new = read_pid(&self.pid)?;
        ensure!(new != old, "process {old} is still the server's");
        ensure!(is_alive(new), "process {new}, the new one, is gone");
        Ok(())
    }

    /// Upgrades to a version that does not start; the old one must go on, and the command fail.
    fn fail(&self, trouble: Trouble) -> anyhow::Result<()> {
        let old = read_pid(&self.pid)?;
        trouble.install(&self.installed)?;
        let outcome = run(self.command(), UPGRADE_MAX);
        fs::remove_file(&self.installed).or_else(|error| match trouble {
            Trouble::Missing => Ok(()),
            _ => Err(error),
        })?;
        symlink(&self.built, &self.installed)?;
        if outcome.is_ok() {
            bail!("`greenroom upgrade` succeeded with a version that {trouble:?}");
        }
        ensure!(is_alive(old), "the old process, {old}, is gone");
        ensure!(
            read_pid(&self.pid)? == old,
            "the pid file does not name process {old}"
        );
        Ok(())
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.built);
        command.args(["upgrade", "--pid-file"]).arg(&self.pid);
        command
    }
}

impl Server for Greenroom {
    fn upgrade(&mut self) -> anyhow::Result<()> {
        match self.trouble {
            None => self.succeed(),
            Some(trouble) => self.fail(trouble),
        }
    }

    /// After versions that did not start, one does.
    fn finish(&mut self) -> anyhow::Result<()> {
        match self.trouble {
            None => Ok(()),
            Some(_) => self.succeed(),
        }
    }

    fn family(&mut self) -> &mut Family {
        &mut self.family
    }
}

impl Trouble {
    /// Puts such a version in place of the one that is installed.
    fn install(self, installed: &Path) -> anyhow::Result<()> {
        let text = match self {
            Self::Crashes => "#!/bin/sh\necho 'the new version does not start' >&2\nexit 3\n",
            Self::Hangs => "#!/bin/sh\nexec sleep 600\n",
            Self::Missing => return Ok(fs::remove_file(installed)?),
        };
        let beside = installed.with_extension("new");
        fs::write(&beside, text)?;
        fs::set_permissions(&beside, Permissions::from_mode(0o755))?;
        Ok(fs::rename(beside, installed)?)
    }
}

fn arguments(place: &Place, served: Application, pid: &Path) -> anyhow::Result<Vec<OsString>> {
    let mut arguments: Vec<OsString> = vec!["serve".into()];
    match served {
        Application::Demo => {}
        Application::Psgi => {
            arguments.push(application().into());
            arguments.extend(["--workers".into(), WORKERS.into()]);
        }
        Application::Sites => {
            let file = place.file("sites.toml");
            fs::write(&file, sites(place))?;
            arguments.push(file.into());
        }
    }
    let (tls, plain) = (place.target.tls.to_string(), place.target.plain.to_string());
    arguments.extend(["--listen", &tls, "--listen-plain", &plain].map(Into::into));
    arguments.extend(["--cert".into(), place.certificate().into()]);
    arguments.extend(["--key".into(), place.key().into()]);
    arguments.extend(["--http3".into(), "--pid".into(), pid.into()]);
    // The default is as long as the transfers: one that began just before would be aborted.
    arguments.extend(["--no-access-log", "--drain-deadline", "60s"].map(Into::into));
    // A version that hangs is given up after this time.
    arguments.extend(["--upgrade-timeout", "5s"].map(Into::into));
    Ok(arguments)
}

/// Two for short requests, and one for each download: a blocking application writes those itself.
pub(super) const WORKERS: &str = "5";

fn sites(place: &Place) -> String {
    let (upstream, psgi) = (place.upstream, application());
    let psgi = psgi.display();
    format!(
        "[[site]]\n\n[[site.route]]\npath = \"/\"\nproxy = {{ to = [\"http://{upstream}\"] }}\n\n\
         [[site.route]]\npath = \"/psgi/\"\npsgi = {{ app = \"{psgi}\", workers = 2 }}\n"
    )
}
