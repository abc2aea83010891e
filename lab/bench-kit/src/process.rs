//! Servers as child processes, each on its core, ended when dropped.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::measure::family;

/// The core of the server under test.
pub const SERVER_CORE: usize = 0;
/// The core of the programs that make its load.
pub const LOAD_CORE: usize = 1;

const START_MAX: Duration = Duration::from_secs(10);
const END_MAX: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(10);
const UNKNOWN: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0));

/// Returns a command that `taskset` keeps on one core.
#[must_use]
pub fn pinned(core: usize, program: impl AsRef<Path>) -> Command {
    let mut command = Command::new("taskset");
    command
        .args(["-c", &core.to_string()])
        .arg(program.as_ref());
    command
}

/// Returns a command that `taskset` keeps on one core, or that may run on any.
pub(crate) fn placed(core: Option<usize>, program: &Path) -> Command {
    core.map_or_else(|| Command::new(program), |core| pinned(core, program))
}

/// The start of a server: its program, arguments and core.
#[derive(Clone, Debug)]
pub struct Launch {
    program: PathBuf,
    arguments: Vec<OsString>,
    core: Option<usize>,
    environment: Vec<(&'static str, OsString)>,
    listen_flag: Option<&'static str>,
    second_address: Option<SocketAddr>,
}

/// A listening server; it ends with this value.
#[derive(Debug)]
pub struct Server {
    child: Child,
    address: SocketAddr,
    /// Kept open, so that the server may still print.
    stdout: Option<BufReader<ChildStdout>>,
}

impl Launch {
    /// Starts without arguments, on [`SERVER_CORE`], announcing its address.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            arguments: Vec::new(),
            core: Some(SERVER_CORE),
            environment: Vec::new(),
            listen_flag: None,
            second_address: None,
        }
    }

    /// Adds further arguments.
    #[must_use]
    pub fn arguments<A: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Sets another core than the server's.
    #[must_use]
    pub fn on_core(mut self, core: usize) -> Self {
        self.core = Some(core);
        self
    }

    /// Removes the core: the server has all of them, and shares them with the load.
    #[must_use]
    pub fn on_all_cores(mut self) -> Self {
        self.core = None;
        self
    }

    /// Adds a variable to its environment, beside those of this program.
    #[must_use]
    pub fn environment(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.environment.push((name, value.into()));
        self
    }

    /// Sets the flag that takes an address; a server without one announces the address that it
    /// chose.
    #[must_use]
    pub fn listen_flag(mut self, flag: Option<&'static str>) -> Self {
        self.listen_flag = flag;
        self
    }

    /// Sets a second address on which a server with a [flag](Self::listen_flag) for the first one
    /// listens; its arguments have to name it.
    #[must_use]
    pub fn second_address(mut self, address: SocketAddr) -> Self {
        self.second_address = Some(address);
        self
    }

    /// Starts the server and waits until it listens.
    ///
    /// # Errors
    /// If it ends, or does not listen within ten seconds.
    pub fn start(&self) -> anyhow::Result<Server> {
        let name = self.program.display();
        let started = match self.listen_flag {
            None => self.start_announcing(),
            Some(flag) => self.start_listening_on(flag, free_address()?),
        };
        started.with_context(|| format!("cannot start {name}"))
    }

    fn start_announcing(&self) -> anyhow::Result<Server> {
        let mut child = self.command().stdout(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take().context("standard output is a pipe")?;
        let mut server = Server {
            child,
            address: UNKNOWN,
            stdout: Some(BufReader::new(stdout)),
        };
        server.address = server.read_address()?;
        Ok(server)
    }

    fn start_listening_on(&self, flag: &str, address: SocketAddr) -> anyhow::Result<Server> {
        let mut command = self.command();
        command
            .arg(flag)
            .arg(address.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut server = Server {
            child: command.spawn()?,
            address,
            stdout: None,
        };
        for address in [Some(address), self.second_address].into_iter().flatten() {
            server.wait_until_it_accepts(address)?;
        }
        Ok(server)
    }

    fn command(&self) -> Command {
        let mut command = placed(self.core, &self.program);
        command.args(&self.arguments).stdin(Stdio::null());
        command.envs(self.environment.iter().cloned());
        command
    }
}

/// Returns an address that was bound and released: the next to bind it is the server that gets it.
///
/// # Errors
/// If there is none.
pub fn free_address() -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind(UNKNOWN).context("no free port")?;
    listener.local_addr().context("no free port")
}

impl Server {
    /// Returns its process number.
    #[must_use]
    pub fn pid(&self) -> u32 {
        // `taskset` replaces itself by the server, so the child's process is the server's.
        self.child.id()
    }

    /// Returns the address on which it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the URL of a path that begins with a slash.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Ends it with SIGTERM, as a supervisor does, and waits for that.
    ///
    /// # Errors
    /// If it does not end within ten seconds.
    pub fn terminate(mut self) -> anyhow::Result<()> {
        let pid = Pid::from_raw(i32::try_from(self.pid())?);
        kill(pid, Signal::SIGTERM).context("SIGTERM")?;
        let deadline = Instant::now() + END_MAX;
        while self.child.try_wait()?.is_none() {
            ensure!(Instant::now() < deadline, "it does not end on SIGTERM");
            thread::sleep(POLL);
        }
        Ok(())
    }

    fn read_address(&mut self) -> anyhow::Result<SocketAddr> {
        let mut line = String::new();
        if let Some(stdout) = &mut self.stdout {
            stdout.read_line(&mut line).context("standard output")?;
        }
        let Some(address) = line.trim_end().strip_prefix("listening on ") else {
            bail!("its first line is {line:?}, not \"listening on ADDRESS\"");
        };
        address
            .parse()
            .with_context(|| format!("{address:?} is not an address"))
    }

    fn wait_until_it_accepts(&mut self, address: SocketAddr) -> anyhow::Result<()> {
        let deadline = Instant::now() + START_MAX;
        while TcpStream::connect(address).is_err() {
            if let Some(status) = self.child.try_wait()? {
                bail!("it ended with {status}");
            }
            ensure!(
                Instant::now() < deadline,
                "it does not accept on {address} after {START_MAX:?}"
            );
            thread::sleep(POLL);
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Its children may be at work: they would outlive the server, and disturb the next
        // measurement. The server ends first, or it would start others in their place. They may all
        // have ended by themselves; a failure here has no remedy.
        let members = family(self.pid());
        let _ = self.child.kill();
        for member in members.iter().skip(1) {
            if let Ok(pid) = i32::try_from(member.pid) {
                let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
            }
        }
        let _ = self.child.wait();
    }
}
