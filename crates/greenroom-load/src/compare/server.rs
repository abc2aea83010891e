//! A server as a child process.

use std::io::{self, PipeWriter};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use procfs::process::all_processes;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use socket2::{Domain, SockAddr, Socket, Type};

use super::CompareError;
use super::cores::{Cores, Pinned};
use super::output::Tail;
use crate::plan::{Place, Target};
use crate::run::Stop;

/// The pause between two checks that a server accepts connections, or has ended.
const POLL: Duration = Duration::from_millis(10);
/// The pause between two checks that the place is vacant; each is a connection to the other
/// listener.
const VACANT_POLL: Duration = Duration::from_millis(100);
/// The longest time of one attempt to connect.
const CONNECT_MAX: Duration = Duration::from_secs(1);
/// The longest wait for the processes of a group that was killed.
const GONE_WAIT_MAX: Duration = Duration::from_secs(1);
/// The time that another listener has to go away from the place of a server.
const VACANT_WAIT_MAX: Duration = Duration::from_secs(2);

/// The start of a server.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Its name in errors.
    pub name: String,
    /// The program and its arguments; at least the program. It must stay in the foreground.
    pub command: Vec<String>,
    /// Variables beside those of this program.
    pub environment: Vec<(String, String)>,
    /// The URL at which it accepts connections.
    pub target: Target,
    /// The cores that it runs on; `None` leaves that to the kernel.
    pub cores: Option<Cores>,
    /// The time within which it must accept connections. Default: 10 s.
    pub start_timeout: Duration,
    /// The time that it has to end after SIGTERM, before SIGKILL. Default: 5 s.
    pub end_timeout: Duration,
}

impl Launch {
    /// Creates a start with the defaults, on any core.
    #[must_use]
    pub fn new(name: String, command: Vec<String>, target: Target) -> Self {
        Self {
            name,
            command,
            environment: Vec::new(),
            target,
            cores: None,
            start_timeout: Duration::from_secs(10),
            end_timeout: Duration::from_secs(5),
        }
    }
}

/// A server that accepts connections. Its process group ends when this value is dropped.
#[derive(Debug)]
pub struct Server {
    name: String,
    child: Child,
    /// Its exit status, once it was waited for; from then on its process number may be reused.
    status: Option<ExitStatus>,
    output: Tail,
    end_timeout: Duration,
}

impl Server {
    /// Starts a server and waits until it accepts connections.
    ///
    /// # Errors
    /// [`CompareError`] when its place is taken, it cannot be started, ends, or does not accept in
    /// time; and when `stop` is set meanwhile.
    pub fn start(launch: &Launch, stop: &Stop) -> Result<Self, CompareError> {
        wait_until_vacant(launch)?;
        let not_started = |source| CompareError::Start {
            name: launch.name.clone(),
            program: launch.command.first().cloned().unwrap_or_default(),
            source,
        };
        let (reader, writer) = io::pipe().map_err(not_started)?;
        // Before the pinning, so that its thread does not run on the server's cores.
        let output = Tail::of(reader).map_err(not_started)?;
        let pinned = Pinned::to(launch.cores.as_ref())?;
        let spawned = spawn(launch, writer);
        drop(pinned);
        let child = spawned.map_err(not_started)?;
        let mut server = Self {
            name: launch.name.clone(),
            child,
            status: None,
            output,
            end_timeout: launch.end_timeout,
        };
        server.wait_until_it_accepts(launch, stop)?;
        Ok(server)
    }

    /// Returns its process number, which is its process group's too.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the end of its output until now.
    #[must_use]
    pub fn output(&self) -> String {
        self.output.text()
    }

    /// Checks that it has not ended by itself.
    ///
    /// # Errors
    /// [`CompareError::Ended`] with the end of its output.
    pub fn check(&mut self, when: &'static str) -> Result<(), CompareError> {
        if !self.has_ended() {
            return Ok(());
        }
        let name = self.name.clone();
        let status = self.end().map_err(|source| CompareError::Start {
            name: name.clone(),
            program: name.clone(),
            source,
        })?;
        Err(CompareError::Ended {
            name,
            status,
            when,
            output: self.output.text_to_the_end(),
        })
    }

    fn wait_until_it_accepts(&mut self, launch: &Launch, stop: &Stop) -> Result<(), CompareError> {
        let begin = Instant::now();
        loop {
            let accepts = accepts(&launch.target.place);
            // A server that could not listen ends; then it is another process that accepts.
            self.check("before it accepted connections")?;
            if accepts {
                return Ok(());
            }
            if stop.is_stopped() {
                return Err(CompareError::Interrupted);
            }
            if begin.elapsed() >= launch.start_timeout {
                return Err(CompareError::Silent {
                    name: launch.name.clone(),
                    url: launch.target.to_string(),
                    timeout: launch.start_timeout,
                    output: self.output(),
                });
            }
            thread::sleep(POLL);
        }
    }

    fn group(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Returns true if it has ended. It is not waited for yet, so that its number, and its group's,
    /// is not used again.
    fn has_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        !matches!(waitid(WaitId::Pid(self.group()), options), Ok(None))
    }

    /// Ends its group and returns its exit status: sends SIGTERM, and SIGKILL when its time is
    /// over. Processes that outlive the server get no time.
    fn end(&mut self) -> io::Result<ExitStatus> {
        if let Some(status) = self.status {
            return Ok(status);
        }
        let group = self.group();
        // An error means that the group is already empty.
        let _ = kill_process_group(group, Signal::TERM);
        let begin = Instant::now();
        while !self.has_ended() && begin.elapsed() < self.end_timeout {
            thread::sleep(POLL);
        }
        let _ = kill_process_group(group, Signal::KILL);
        let status = self.child.wait()?;
        self.status = Some(status);
        wait_until_gone(group);
        Ok(status)
    }
}

/// Waits until killed processes are gone; they end a little later, and until then hold their
/// sockets.
fn wait_until_gone(group: Pid) {
    let begin = Instant::now();
    while is_alive(group) && begin.elapsed() < GONE_WAIT_MAX {
        thread::sleep(POLL);
    }
}

/// Returns true if a process of this group is more than a zombie, which may never be waited for and
/// which holds nothing.
fn is_alive(group: Pid) -> bool {
    let processes = all_processes().into_iter().flatten().flatten();
    let mut stats = processes.filter_map(|process| process.stat().ok());
    stats.any(|stat| stat.pgrp == group.as_raw_pid() && !matches!(stat.state, 'Z' | 'X'))
}

impl Drop for Server {
    fn drop(&mut self) {
        // A drop has no way to report a failure.
        let _ = self.end();
    }
}

fn spawn(launch: &Launch, output: PipeWriter) -> io::Result<Child> {
    let (program, arguments) = launch
        .command
        .split_first()
        .ok_or(io::ErrorKind::InvalidInput)?;
    Command::new(program)
        .args(arguments)
        .envs(launch.environment.iter().cloned())
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        .process_group(0)
        .spawn()
}

/// Waits until no process accepts connections there; otherwise another server would be measured.
fn wait_until_vacant(launch: &Launch) -> Result<(), CompareError> {
    let begin = Instant::now();
    while accepts(&launch.target.place) {
        if begin.elapsed() >= VACANT_WAIT_MAX {
            return Err(CompareError::Occupied {
                name: launch.name.clone(),
                url: launch.target.to_string(),
            });
        }
        thread::sleep(VACANT_POLL);
    }
    Ok(())
}

/// Returns true if a process listens there, even one too loaded to accept: only `ECONNREFUSED`
/// proves that none does.
fn accepts(place: &Place) -> bool {
    let attempt = match place {
        Place::Unix(path) => connect_unix(path),
        Place::Tcp { host, port } => connect_tcp(host, *port),
    };
    match attempt {
        Ok(()) => true,
        Err(error) => matches!(
            error.kind(),
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock
        ),
    }
}

fn connect_unix(path: &Path) -> io::Result<()> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    // With a full backlog a blocking connect would wait for ever.
    socket.set_nonblocking(true)?;
    socket.connect(&SockAddr::unix(path)?)
}

fn connect_tcp(host: &str, port: u16) -> io::Result<()> {
    let mut last = Err(io::ErrorKind::AddrNotAvailable.into());
    for address in (host, port).to_socket_addrs()? {
        last = TcpStream::connect_timeout(&address, CONNECT_MAX).map(drop);
        if last.is_ok() {
            break;
        }
    }
    last
}
