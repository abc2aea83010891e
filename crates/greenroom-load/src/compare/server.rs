//! A server as a child process.

use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use procfs::process::all_processes;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use socket2::{Domain, SockAddr, Socket, Type};

use super::cores::{Cores, Pinned};
use super::output::Tail;
use super::plan::Run;
use super::{CompareError, Comparison};
use crate::plan::Place;
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

/// A server that accepts connections. Its process group ends when this value is dropped.
#[derive(Debug)]
pub(super) struct Server {
    child: Child,
    /// Its exit status, once it was waited for; from then on its process number may be reused.
    status: Option<ExitStatus>,
    output: Tail,
    end_timeout: Duration,
}

impl Server {
    /// Starts a server and waits until it accepts connections.
    pub(super) fn start(
        comparison: &Comparison,
        run: &Run<'_>,
        cores: Option<&Cores>,
        stop: &Stop,
    ) -> Result<Self, CompareError> {
        let place = &run.contender.target.place;
        wait_until_vacant(place, run)?;
        let pinned = Pinned::to(cores)?;
        let spawned = spawn(&run.contender.command);
        drop(pinned);
        let (child, output) = spawned.map_err(|error| not_started(run, error))?;
        let mut server = Self {
            child,
            status: None,
            output,
            end_timeout: comparison.end_timeout,
        };
        server.wait_until_it_accepts(comparison.start_timeout, run, stop)?;
        Ok(server)
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the end of its output until now.
    pub(super) fn output(&self) -> String {
        self.output.text()
    }

    /// Returns an error when it has ended.
    pub(super) fn check(&mut self, run: &Run<'_>, when: &'static str) -> Result<(), CompareError> {
        if !self.has_ended() {
            return Ok(());
        }
        let status = self.end().map_err(|error| not_started(run, error))?;
        Err(CompareError::Ended {
            name: run.name.clone(),
            status,
            when,
            output: self.output.text_to_the_end(),
        })
    }

    fn wait_until_it_accepts(
        &mut self,
        timeout: Duration,
        run: &Run<'_>,
        stop: &Stop,
    ) -> Result<(), CompareError> {
        let begin = Instant::now();
        loop {
            let accepts = accepts(&run.contender.target.place);
            // A server that could not listen ends; then it is another process that accepts.
            self.check(run, "before it accepted connections")?;
            if accepts {
                return Ok(());
            }
            if stop.is_stopped() {
                return Err(CompareError::Interrupted);
            }
            if begin.elapsed() >= timeout {
                return Err(CompareError::Silent {
                    name: run.name.clone(),
                    url: run.contender.target.to_string(),
                    timeout,
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

fn not_started(run: &Run<'_>, source: io::Error) -> CompareError {
    CompareError::Start {
        name: run.name.clone(),
        program: run.contender.command.first().cloned().unwrap_or_default(),
        source,
    }
}

fn spawn(command: &[String]) -> io::Result<(Child, Tail)> {
    let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let (reader, writer) = io::pipe()?;
    let output = Tail::of(reader)?;
    let child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .process_group(0)
        .spawn()?;
    Ok((child, output))
}

/// Waits until no process accepts connections there; otherwise another server would be measured.
fn wait_until_vacant(place: &Place, run: &Run<'_>) -> Result<(), CompareError> {
    let begin = Instant::now();
    while accepts(place) {
        if begin.elapsed() >= VACANT_WAIT_MAX {
            return Err(CompareError::Occupied {
                name: run.name.clone(),
                url: run.contender.target.to_string(),
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
