use std::ffi::OsString;
use std::path::Path;

use url::Url;

use super::installed;
use super::program::Program;

/// A server of `MongoDB`'s protocol.
#[derive(Debug)]
pub(crate) struct FerretDb(Program);

impl FerretDb {
    pub(crate) async fn start() -> Self {
        Self(Program::start(installed("ferretdb/ferretdb"), arguments).await)
    }

    /// Returns the URL of one of its databases. Many connections only wait for each other: there is
    /// one writer at a time, and the others poll for their turn less and less often.
    pub(crate) fn url(&self, database: &str) -> Url {
        let port = self.0.port();
        let text = format!("mongodb://127.0.0.1:{port}/{database}?maxPoolSize=4");
        text.parse().expect("it is a URL")
    }

    /// Returns a URL for tests that make many requests at once, also on an overloaded machine.
    pub(crate) fn patient_url(&self, database: &str) -> Url {
        let mut url = self.url(database);
        url.query_pairs_mut().append_pair("timeoutMS", "120000");
        url
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
    let directory = directory.display();
    [
        "--handler=sqlite".to_owned(),
        format!("--sqlite-url=file:{directory}/"),
        format!("--listen-addr=127.0.0.1:{port}"),
        "--debug-addr=-".to_owned(),
        "--telemetry=disable".to_owned(),
        "--log-level=WARN".to_owned(),
        format!("--state-dir={directory}"),
    ]
    .map(OsString::from)
    .into()
}
