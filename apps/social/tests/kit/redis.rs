use std::ffi::OsString;
use std::path::{Path, PathBuf};

use url::Url;

use super::program::Program;

/// A Redis server, which keeps its data over a restart.
#[derive(Debug)]
pub(crate) struct Redis(Program);

impl Redis {
    pub(crate) async fn start() -> Self {
        Self(Program::start(PathBuf::from("redis-server"), arguments).await)
    }

    pub(crate) fn url(&self) -> Url {
        let text = format!("redis://127.0.0.1:{}", self.0.port());
        text.parse().expect("it is a URL")
    }

    /// See [`Program::kill`].
    pub(crate) fn kill(&mut self) {
        self.0.kill();
    }

    /// See [`Program::restart`].
    pub(crate) async fn restart(&mut self) {
        self.0.restart().await;
    }

    /// See [`Program::signal`].
    pub(crate) fn signal(&self, name: &str) {
        self.0.signal(name);
    }
}

fn arguments(port: u16, directory: &Path) -> Vec<OsString> {
    let port = port.to_string();
    let directory = directory.display().to_string();
    let options = ["--bind", "127.0.0.1", "--port", &port, "--dir", &directory];
    let keeping = ["--save", "", "--appendonly", "yes"];
    options.iter().chain(&keeping).map(OsString::from).collect()
}
