//! `greenroom upgrade`.

use std::io::{self, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use greenroom::{UpgradeOutcome, upgrade_marker};
use rustix::cmsg_space;
use rustix::io::Errno;
use rustix::net::sockopt::set_socket_passcred;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use crate::args::UpgradeArgs;
use crate::{exit, pid};

/// The longest outcome.
const OUTCOME_BYTES_MAX: usize = 16 * 1_024;
/// The interval in which is looked whether the server lives.
const LOOK: Duration = Duration::from_millis(200);

pub(crate) fn run(args: &UpgradeArgs) -> ExitCode {
    match ask(args) {
        Ok((server, Ok(outcome))) => report(server, outcome, args.timeout),
        Ok((_, Err(error))) => exit::with_message(exit::FAILED, error.to_string()),
        Err(message) => exit::with_message(exit::NOT_STARTED, message),
    }
}

/// The outcome of an upgrade, as far as it was told; `None` if it was not in time.
type Told = io::Result<Option<UpgradeOutcome>>;

/// Asks for an upgrade, and returns the process that was asked with the outcome; an error if it was
/// not asked.
fn ask(args: &UpgradeArgs) -> Result<(Pid, Told), String> {
    let server = match (&args.pid_file, args.pid) {
        (Some(file), _) => pid::read(file)?,
        (None, Some(number)) => {
            let pid = Some(number).filter(|number| *number > 0);
            let pid = pid.and_then(Pid::from_raw);
            pid.ok_or_else(|| format!("{number} is not the number of a process"))?
        }
        (None, None) => return Err("name a PID or a --pid-file".to_owned()),
    };
    check(server, "begins no upgrades at SIGUSR2")?;
    let inbox = Inbox::open(server)?;
    kill_process(server, Signal::USR2)
        .map_err(|errno| format!("process {server}: {}", io::Error::from(errno)))?;
    Ok((server, inbox.wait(args.timeout)))
}

/// Fails for a process that is no server, which the signal in `what` would end.
pub(crate) fn check(server: Pid, what: &str) -> Result<(), String> {
    if test_kill_process(server) == Err(Errno::SRCH) {
        return Err(format!("there is no process {server}"));
    }
    let marker = upgrade_marker(server.as_raw_nonzero().get().unsigned_abs());
    let connect = || {
        let socket = UnixDatagram::unbound()?;
        socket.connect_addr(&SocketAddr::from_abstract_name(marker)?)
    };
    connect().map_err(|_: io::Error| {
        format!(
            "process {server} {what}, which would end it: it is no \
             `greenroom serve` and no program with `upgrade_on_signal`, or has not begun to serve, \
             or is in another container, or had no Unix socket to be found by, as its log says"
        )
    })
}

/// The place where the outcome arrives.
struct Inbox {
    socket: UnixDatagram,
    server: Pid,
}

impl Inbox {
    fn open(server: Pid) -> Result<Self, String> {
        let name = UpgradeOutcome::address_for(server.as_raw_nonzero().get().unsigned_abs());
        let open = || {
            let socket = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(name)?)?;
            // Anybody can send there; the system says who did.
            set_socket_passcred(&socket, true)?;
            socket.set_read_timeout(Some(LOOK))?;
            Ok(Self { socket, server })
        };
        open().map_err(|error: io::Error| match error.kind() {
            io::ErrorKind::AddrInUse => {
                format!("another `greenroom upgrade` waits for process {server}")
            }
            _ => format!("the outcome cannot be waited for: {error}"),
        })
    }

    fn wait(&self, time: Duration) -> io::Result<Option<UpgradeOutcome>> {
        let begin = Instant::now();
        while begin.elapsed() < time {
            let is_there = test_kill_process(self.server) != Err(Errno::SRCH);
            match self.receive() {
                Ok(Some(outcome)) => return Ok(Some(outcome)),
                Ok(None) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if is_there => {}
                Err(Errno::AGAIN) => {
                    return Err(io::Error::other(format!(
                        "process {} has ended, and did not tell the outcome",
                        self.server
                    )));
                }
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(None)
    }

    /// Returns the outcome in a message of the server, and `None` for any other.
    fn receive(&self) -> Result<Option<UpgradeOutcome>, Errno> {
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmCredentials(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut bytes = vec![0; OUTCOME_BYTES_MAX];
        let mut parts = [IoSliceMut::new(&mut bytes)];
        let flags = RecvFlags::CMSG_CLOEXEC;
        let received = recvmsg(&self.socket, &mut parts, &mut control, flags)?;
        let is_servers = control.drain().any(|message| match message {
            RecvAncillaryMessage::ScmCredentials(sender) => sender.pid == self.server,
            _ => false,
        });
        let text = String::from_utf8_lossy(&bytes[..received.bytes]);
        Ok(UpgradeOutcome::parse(&text).filter(|_| is_servers))
    }
}

fn report(server: Pid, outcome: Option<UpgradeOutcome>, time: Duration) -> ExitCode {
    let message = match outcome {
        Some(UpgradeOutcome::Serves { pid }) => {
            let line = format!("process {pid} serves; process {server} drains\n");
            // The upgrade is done, whoever reads of it.
            let _printed = io::stdout().write_all(line.as_bytes());
            return ExitCode::SUCCESS;
        }
        Some(UpgradeOutcome::Failed { reason }) => {
            format!("the next version does not serve, and process {server} goes on: {reason}")
        }
        Some(UpgradeOutcome::Refused { reason }) => {
            format!("process {server} does not begin an upgrade: {reason}")
        }
        None => format!("process {server} has not told the outcome within {time:?}; its log does"),
    };
    exit::with_message(exit::FAILED, message)
}
