//! The side of the next version.

use std::env;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use nix::unistd::dup2_stdin;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::channel::Channel;
use super::handed::{Kind, Label};

/// The variable by which a process knows that its standard input is the channel to the version
/// before: the number of the socket's inode, since variables are inherited further than sockets.
pub(super) const VARIABLE: &str = "GREENROOM_UPGRADE";

/// Time in which the version before sends its sockets, which it does at once.
const SOCKETS_TIMEOUT: Duration = Duration::from_secs(10);
/// Time in which it says that it steps back.
const GO_TIMEOUT: Duration = Duration::from_secs(10);

/// The interval in which is looked whether the version before is there.
const LOOK: Duration = Duration::from_mins(1);

/// The version before, while it serves.
#[derive(Debug)]
pub(super) struct Predecessor {
    channel: Channel,
    pid: i32,
    /// The descriptors that it handed over, by index; `None` once it is in use.
    handed: Vec<(Option<Label>, Option<OwnedFd>)>,
    /// The text for this version's history of upgrades.
    told: Option<String>,
}

impl Predecessor {
    /// Finds the version before; `None` if this process was started by anybody else. Its channel is
    /// no longer standard input then, which is empty.
    pub(super) fn find() -> io::Result<Option<Self>> {
        let Some(named) = env::var_os(VARIABLE) else {
            return Ok(None);
        };
        // One that is closed is no channel either.
        let Ok(input) = io::stdin().as_fd().try_clone_to_owned() else {
            return Ok(None);
        };
        if identity(&input)? != named.to_string_lossy() {
            return Ok(None);
        }
        dup2_stdin(File::open("/dev/null")?)?;
        let pid = socket_peercred(&input)?.pid.as_raw_nonzero().get();
        let mut predecessor = Self {
            channel: Channel::new(input),
            pid,
            handed: Vec::new(),
            told: None,
        };
        predecessor.receive_handed()?;
        Ok(Some(predecessor))
    }

    pub(super) fn pid(&self) -> i32 {
        self.pid
    }

    pub(super) fn told(&self) -> Option<&str> {
        self.told.as_deref()
    }

    /// Returns what is needed to wait for its end.
    pub(super) fn end(&self) -> End {
        End::of(self.pid)
    }

    fn receive_handed(&mut self) -> io::Result<()> {
        let deadline = Instant::now() + SOCKETS_TIMEOUT;
        loop {
            let message = self.channel.receive(deadline)?;
            let message = message.ok_or(io::ErrorKind::TimedOut)?;
            let (kind, lines) = message.text.split_once('\n').unwrap_or_default();
            if kind == "end" {
                // Versions of before there was a history tell nothing.
                self.told = Some(lines.to_owned()).filter(|told| !told.is_empty());
                return Ok(());
            }
            let labels: Vec<_> = lines.lines().map(Label::parse).collect();
            if kind != "sockets" || labels.len() != message.descriptors.len() {
                return Err(io::Error::other(
                    "the version before said what nobody understands",
                ));
            }
            let descriptors = message.descriptors.into_iter().map(Some);
            self.handed.extend(labels.into_iter().zip(descriptors));
        }
    }

    /// Takes the descriptors of this label, all of them.
    pub(super) fn take(&mut self, label: &Label) -> Vec<OwnedFd> {
        let meant = self
            .handed
            .iter_mut()
            .filter(|(handed, _)| handed.as_ref() == Some(label));
        meant.filter_map(|(_, socket)| socket.take()).collect()
    }

    /// Takes the listening sockets of the first address of this text that nobody has taken.
    pub(super) fn take_any(&mut self, part: &str, asked: &str) -> Vec<OwnedFd> {
        let is_meant = |label: &&Label| {
            let kinds = [Kind::Bound, Kind::Passed, Kind::PassedProxied];
            label.part == part && kinds.contains(&label.kind) && label.named.asked == asked
        };
        let mut left = self.handed.iter().filter(|(_, socket)| socket.is_some());
        let first = left.find_map(|(label, _)| label.as_ref().filter(is_meant).cloned());
        first.map_or_else(Vec::new, |label| self.take(&label))
    }

    /// Takes the ways to versions that drain, of this address: each with the text behind it.
    #[cfg(feature = "http3")]
    pub(super) fn take_routes(&mut self, part: &str, address: &str) -> Vec<(String, OwnedFd)> {
        let routes = self.handed.iter_mut().filter_map(|(label, socket)| {
            let label = label.as_ref()?;
            let (of_address, key) = label.named.asked.split_once(' ')?;
            let is_meant =
                label.part == part && label.kind == Kind::Forward && of_address == address;
            is_meant.then_some(())?;
            Some((key.to_owned(), socket.take()?))
        });
        routes.collect()
    }

    /// Takes the sockets that the starter of the first version had passed on; `true` for those
    /// where proxies announce their clients.
    pub(super) fn take_passed(&mut self, part: &str) -> Vec<(OwnedFd, bool)> {
        let passed = self.handed.iter_mut().filter_map(|(label, socket)| {
            let label = label.as_ref().filter(|label| label.part == part)?;
            let is_proxied = match label.kind {
                Kind::Passed => false,
                Kind::PassedProxied => true,
                _ => return None,
            };
            Some((socket.take()?, is_proxied))
        });
        passed.collect()
    }

    /// Tells it why this process cannot take over.
    pub(super) fn fail(self, reason: &str) {
        // If it has ended, there is nobody to tell.
        let _told = self.channel.send(&format!("failed\n{reason}"), &[]);
    }

    /// Tells it that all is ready, and waits until it leaves the sockets to this process. What is
    /// not in use is closed.
    pub(super) fn ready(&mut self) -> io::Result<()> {
        let left = self.handed.iter().enumerate();
        let left = left.filter(|(_, (_, socket))| socket.is_some());
        let left: Vec<String> = left.map(|(index, _)| index.to_string()).collect();
        self.handed.clear();
        let text = format!("ready\n{}", left.join(" "));
        self.channel.send(&text, &[])?;
        let message = self.channel.receive(Instant::now() + GO_TIMEOUT)?;
        match message {
            Some(message) if message.text == "go" => Ok(()),
            _ => Err(io::Error::other("it does not leave its sockets")),
        }
    }

    /// Tells it that this process serves, and waits until it has ended; `heard` is called with what
    /// it says meanwhile.
    pub(super) fn serves(self, heard: impl Fn(&str)) {
        // If it has ended meanwhile, this one serves all the more.
        let _told = self.channel.send("serving", &[]);
        while let Ok(message) = self.channel.receive(Instant::now() + LOOK) {
            if let Some(message) = message {
                heard(&message.text);
            }
        }
    }
}

/// The end of a process, to be waited for.
pub(super) struct End(Option<OwnedFd>);

impl End {
    fn of(pid: i32) -> Self {
        let pid = Pid::from_raw(pid);
        let opened = pid.map(|pid| pidfd_open(pid, PidfdFlags::empty()));
        Self(opened.and_then(|opened| {
            opened
                .inspect_err(|error| {
                    tracing::debug!(%error, "the end of the version before is not seen");
                })
                .ok()
        }))
    }

    /// Waits as long as the process lives; where the system has no descriptors of processes, not at
    /// all, and returns `false`.
    pub(super) fn wait(self) -> bool {
        let Some(process) = self.0 else {
            return false;
        };
        loop {
            match poll(&mut [PollFd::new(&process, PollFlags::IN)], None) {
                Ok(_) => return true,
                Err(Errno::INTR) => {}
                Err(_) => return false,
            }
        }
    }
}

/// Returns the text that names a socket.
pub(super) fn identity(socket: &OwnedFd) -> io::Result<String> {
    let socket = File::from(socket.try_clone()?);
    Ok(socket.metadata()?.ino().to_string())
}
