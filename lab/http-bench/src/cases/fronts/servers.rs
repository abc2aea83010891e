//! The servers of these cases, and what they serve.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use bench_kit::lab_directory;
use bench_kit::tools::is_installed;
use tempfile::TempDir;

use crate::cases::Context;
use crate::cases::contestant::{Contestant, present};

pub(super) const GREENROOM: &str = "greenroom serve";
/// The server whose CPU time is 1.
pub(super) const NGINX: &str = "nginx";

/// A directory of files, and a server behind, for all servers of a case.
pub(super) struct Place {
    directory: TempDir,
    upstream: SocketAddr,
}

impl Place {
    pub(super) fn new(upstream: SocketAddr) -> anyhow::Result<Self> {
        let directory = tempfile::tempdir().context("a directory for files")?;
        let place = Self {
            directory,
            upstream,
        };
        fs::create_dir(place.root())?;
        fs::write(place.site(), place.site_text())?;
        Ok(place)
    }

    /// Makes a file of so many bytes. The system keeps its pages, so no disk is measured.
    pub(super) fn add_file(&self, name: &str, bytes: u64) -> anyhow::Result<()> {
        let file = File::create(self.root().join(name))?;
        file.set_len(bytes).context("a file to serve")
    }

    /// Returns the servers that take part, and a note for each that is not installed.
    pub(super) fn servers(
        &self,
        path: &'static str,
        peers: &[(&str, &str)],
        context: &Context,
    ) -> anyhow::Result<(Vec<Contestant>, Vec<String>)> {
        let site = text(&self.site());
        let ours = Contestant::new("greenroom", path)
            .arguments(["serve", &site, "--loops", "1"])
            .listening_by("--listen")
            .named(GREENROOM);
        let mut servers = vec![ours];
        let mut notes = Vec::new();
        for (program, name) in peers {
            if is_installed(program) {
                servers.push(self.found(program, path)?.named(name));
            } else {
                notes.push(format!("LEFT OUT, as it is not here: {name}"));
            }
        }
        let again = servers.iter().find(|server| server.name == NGINX);
        let again = again.map(Contestant::again);
        servers.extend(again);
        Ok((present(servers, context), notes))
    }

    /// A program of the distribution, started by its script.
    fn found(&self, program: &str, path: &'static str) -> anyhow::Result<Contestant> {
        let directory = self.directory.path().join(program);
        fs::create_dir_all(&directory)?;
        let script = lab_directory().join(format!("http-bench/standins/front-{program}.sh"));
        let upstream = self.upstream.to_string();
        let arguments = [text(&directory), text(&self.root()), upstream];
        Ok(Contestant::at(script, path)
            .arguments(arguments)
            .listening_by("--listen"))
    }

    fn root(&self) -> PathBuf {
        self.directory.path().join("public")
    }

    fn site(&self) -> PathBuf {
        self.directory.path().join("greenroom.toml")
    }

    fn site_text(&self) -> String {
        let upstream = self.upstream;
        format!(
            "[server]\nno_access_log = true\n\n\
             [[site]]\n\n\
             [[site.route]]\npath = \"/files/\"\nfiles = \"public\"\n\n\
             [[site.route]]\npath = \"/\"\nproxy = {{ to = [\"http://{upstream}\"] }}\n"
        )
    }
}

fn text(path: &Path) -> String {
    path.display().to_string()
}
