use std::ffi::OsString;
use std::fs::{self, File};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;
use tokio::net::TcpStream;

/// Longest time until a program responds. It takes a second on an idle machine.
const START_MAX: Duration = Duration::from_mins(3);

const POLL: Duration = Duration::from_millis(20);

/// A program that listens on a port of 127.0.0.1 and keeps its data in a directory.
#[derive(Debug)]
pub(crate) struct Program {
    path: PathBuf,
    arguments: Vec<OsString>,
    port: u16,
    directory: TempDir,
    child: Option<Child>,
}

impl Program {
    /// Starts it, and waits until it responds. The arguments are made from its port and its
    /// directory.
    pub(crate) async fn start(
        path: PathBuf,
        arguments: impl FnOnce(u16, &Path) -> Vec<OsString>,
    ) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory can be made");
        let port = super::port::free_port();
        let mut program = Self {
            path,
            arguments: arguments(port, directory.path()),
            port,
            directory,
            child: None,
        };
        program.restart().await;
        program
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Ends it at once, as `kill -9` does. Its data stay.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("a child can be killed");
            child.wait().expect("a child can be waited for");
        }
    }

    /// Restarts it after [`kill`](Self::kill), on the same port and data, and waits until it
    /// responds.
    pub(crate) async fn restart(&mut self) {
        self.kill();
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.log())
            .expect("the log can be written");
        let child = Command::new(&self.path)
            .args(&self.arguments)
            .current_dir(self.directory.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a file can be shared"))
            .stderr(log)
            .spawn()
            .expect("the program can be started");
        self.child = Some(child);
        let responded = tokio::time::timeout(START_MAX, self.wait_until_listening()).await;
        assert!(
            responded.is_ok(),
            "no response in time; {}",
            self.log_tail()
        );
    }

    /// Sends a signal, such as `STOP` and `CONT`. After `STOP` all its threads stand still.
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.as_ref().expect("it runs").id().to_string();
        let status = Command::new("kill").args(["-s", name, &pid]).status();
        assert!(
            status.expect("kill can be run").success(),
            "{pid} cannot be sent {name}"
        );
        while name == "STOP" && !has_stopped(&pid) {
            thread::yield_now();
        }
    }

    async fn wait_until_listening(&mut self) {
        while TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))
            .await
            .is_err()
        {
            let child = self.child.as_mut().expect("it was started");
            let ended = child.try_wait().expect("a child can be asked for");
            assert!(
                ended.is_none(),
                "it ended with {ended:?}; {}",
                self.log_tail()
            );
            tokio::time::sleep(POLL).await;
        }
    }

    fn log_tail(&self) -> String {
        let log = std::fs::read_to_string(self.log()).unwrap_or_default();
        format!("{} said:\n{log}", self.path.display())
    }

    fn log(&self) -> PathBuf {
        self.directory.path().join("program.log")
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.kill();
    }
}

/// True if all threads of this process are stopped: state `T`, of proc(5).
fn has_stopped(pid: &str) -> bool {
    let mut threads = fs::read_dir(format!("/proc/{pid}/task")).expect("it runs");
    threads.all(|thread| {
        let stat = thread.expect("it is listed").path().join("stat");
        let stat = fs::read_to_string(stat).unwrap_or_default();
        let (_, behind_name) = stat.rsplit_once(") ").unwrap_or_default();
        behind_name.starts_with('T')
    })
}
