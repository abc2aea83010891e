//! The side of the version that serves.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::Child;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::channel::{Channel, DESCRIPTORS_MAX, Message};
use super::handed::Handed;
use super::predecessor::identity;
use super::{Shared, UpgradeOutcome, store};

/// The most descriptors that go over.
const HANDED_MAX: usize = 1_024;
/// The interval in which is looked whether this version drains meanwhile.
const LOOK: Duration = Duration::from_millis(50);
/// Time in which the next version begins to accept once it may.
const SERVING_TIMEOUT: Duration = Duration::from_secs(10);
/// Time for a next version that is not wanted to end by itself.
const END_TIMEOUT: Duration = Duration::from_secs(5);
/// A time-out without end, near enough.
const LONG: Duration = Duration::from_hours(24 * 365);

/// Starts the next version, and leaves the sockets to it if it starts.
pub(super) fn exchange(shared: &Shared) -> UpgradeOutcome {
    if !shared.wait_until_ready() {
        let reason = "it has not begun to serve".to_owned();
        return UpgradeOutcome::Failed { reason };
    }
    let begun = Successor::start(shared).map_err(|error| {
        let path = shared.program.path().display();
        format!("{path} cannot be started: {error}")
    });
    let served = begun.and_then(|mut successor| {
        let served = successor.take_over(shared);
        if served.is_err() {
            successor.end();
            // It may have been left to the next version already.
            shared.on_duty.send_replace(true);
        }
        served.map(|()| {
            let pid = successor.child.id();
            *shared.successor.lock() = Some(successor.channel);
            pid
        })
    });
    match served {
        Ok(pid) => UpgradeOutcome::Serves { pid },
        Err(reason) => UpgradeOutcome::Failed { reason },
    }
}

/// The next version, while this one serves.
struct Successor {
    child: Child,
    channel: Channel,
    handed: Vec<Arc<Handed>>,
}

impl Successor {
    fn start(shared: &Shared) -> io::Result<Self> {
        let (channel, theirs) = Channel::pair()?;
        let identity = identity(&theirs)?;
        let (handed, sockets) = still_open(shared.handed())?;
        // If this one cannot take back what is stored, neither can the next one.
        let hidden: &[&str] = if shared.store.is_used() {
            &[]
        } else {
            &[store::VARIABLE]
        };
        let child = shared.program.start(theirs, &identity, hidden)?;
        shared.history.started(child.id(), shared.program.path());
        let path = shared.program.path().display();
        tracing::info!(pid = child.id(), program = %path, "the next version starts");
        let successor = Self {
            child,
            channel,
            handed,
        };
        // One that has ended is found out by its silence.
        if let Err(error) = successor.send(&sockets, &shared.history.told()) {
            tracing::debug!(%error, "the next version does not take the sockets");
        }
        Ok(successor)
    }

    fn send(&self, sockets: &[OwnedFd], told: &str) -> io::Result<()> {
        let labels: Vec<String> = self.handed.iter().map(|each| each.label.line()).collect();
        let batches = sockets.chunks(DESCRIPTORS_MAX);
        for (sockets, labels) in batches.zip(labels.chunks(DESCRIPTORS_MAX)) {
            let descriptors: Vec<_> = sockets.iter().map(AsFd::as_fd).collect();
            let text = format!("sockets\n{}", labels.join("\n"));
            self.channel.send(&text, &descriptors)?;
        }
        self.channel.send(&format!("end\n{told}"), &[])
    }

    /// Waits until it is ready, and leaves the sockets to it.
    fn take_over(&mut self, shared: &Shared) -> Result<(), String> {
        let time = shared.timeout();
        let is_wanted = || shared.is_serving();
        let ready = self.await_message(is_wanted, time, "ready")?;
        if !is_wanted() {
            return Err(CALLED_OFF.to_owned());
        }
        let (_, left) = ready.text.split_once('\n').unwrap_or_default();
        let left: Vec<usize> = left
            .split(' ')
            .filter_map(|word| word.parse().ok())
            .collect();
        shared.on_duty.send_replace(false);
        let sent = self.channel.send("go", &[]);
        sent.map_err(|_| self.end_of_child())?;
        // It may have accepted connections from here on.
        self.await_message(|| true, SERVING_TIMEOUT, "serving")?;
        for (index, handed) in self.handed.iter().enumerate() {
            if !left.contains(&index) {
                handed.set_taken();
            } else if handed.is_named() {
                tracing::info!(
                    socket = handed.label.named.asked,
                    "the next version has no use for it; what waits there is served by this one"
                );
            }
        }
        Ok(())
    }

    fn await_message(
        &mut self,
        is_wanted: impl Fn() -> bool,
        time: Duration,
        kind: &str,
    ) -> Result<Message, String> {
        let begin = Instant::now();
        let deadline = begin.checked_add(time).unwrap_or(begin + LONG);
        loop {
            let look = (Instant::now() + LOOK).min(deadline);
            match self.channel.receive(look) {
                Ok(Some(message)) if message.text.starts_with(kind) => return Ok(message),
                Ok(Some(message)) => return Err(reason_in(&message)),
                Ok(None) if !is_wanted() => return Err(CALLED_OFF.to_owned()),
                Ok(None) if look == deadline => {
                    return Err(format!(
                        "it was not {kind} within {time:?} (upgrade_timeout), and was ended"
                    ));
                }
                Ok(None) => {}
                Err(_) => return Err(self.end_of_child()),
            }
        }
    }

    /// Returns what is known of a process that has ended, or at least closed its channel.
    fn end_of_child(&mut self) -> String {
        match self.await_end(END_TIMEOUT) {
            Some(status) => format!(
                "it ended before it was ready ({status}); its own messages, on standard error, \
                 say why"
            ),
            None => "it closed the channel to this version: the program at this path has no \
                     `upgrade_on_signal`, or a program around it keeps standard input to itself"
                .to_owned(),
        }
    }

    fn await_end(&mut self, time: Duration) -> Option<std::process::ExitStatus> {
        let deadline = Instant::now() + time;
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            if Instant::now() >= deadline {
                return None;
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Ends a process that does not take over, by force if it must be.
    fn end(&mut self) {
        if self.await_end(Duration::ZERO).is_some() {
            return;
        }
        let _sent = kill_process(Pid::from_child(&self.child), Signal::TERM);
        if self.await_end(END_TIMEOUT).is_none() {
            let _killed = self.child.kill();
            self.await_end(END_TIMEOUT);
        }
    }
}

const CALLED_OFF: &str = "this version was told to end meanwhile, and so was the next one";

fn reason_in(message: &Message) -> String {
    match message.text.split_once('\n') {
        Some(("failed", reason)) => reason.to_owned(),
        _ => "it said what nobody understands".to_owned(),
    }
}

/// Returns those that are still open, each with a descriptor.
fn still_open(all: Vec<Arc<Handed>>) -> io::Result<(Vec<Arc<Handed>>, Vec<OwnedFd>)> {
    let mut open = Vec::new();
    for handed in all {
        if let Some(socket) = handed.duplicate() {
            open.push((handed, socket?));
        }
    }
    if open.len() > HANDED_MAX {
        let count = open.len();
        let text = format!("{count} sockets are to be handed over, and {HANDED_MAX} can be");
        return Err(io::Error::other(text));
    }
    Ok(open.into_iter().unzip())
}
