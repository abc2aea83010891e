//! The channel to a zygote, which forks workers and reports their ends.

use std::collections::HashMap;
use std::io;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot};

use super::channel::{Frames, Message, frame};

/// The number of forks that may be ordered before the zygote's task has taken the first of them.
const FORK_ORDERS_MAX: usize = 64;

/// A zygote that is up. When the last clone is dropped its channel ends, and so does the zygote.
#[derive(Clone)]
pub(super) struct Zygote {
    forks: mpsc::Sender<ForkOrder>,
}

/// A zygote that still loads.
pub(super) struct Loading {
    frames: Frames<OwnedReadHalf>,
    output: OwnedWriteHalf,
}

/// The first message of a zygote.
pub(super) enum FirstWord {
    Up(Zygote),
    /// It could not load: Perl's message.
    Failed(String),
    /// It ended without a message.
    Gone,
}

/// A worker that was forked.
pub(super) struct Forked {
    pub(super) pid: Pid,
    /// The worker's wait status, once it has ended; an error if the zygote is lost before.
    pub(super) ended: oneshot::Receiver<u32>,
}

/// The reasons why no worker was forked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotForked {
    /// The zygote is lost.
    Lost,
    /// The system gave the zygote no process or no socket, as the log says; the zygote reports this
    /// wait status instead.
    Failed(u32),
}

struct ForkOrder {
    key: u32,
    reply: Reply,
}

type Reply = oneshot::Sender<Result<Forked, NotForked>>;

struct Task {
    frames: Frames<OwnedReadHalf>,
    output: OwnedWriteHalf,
    orders: mpsc::Receiver<ForkOrder>,
    forking: HashMap<u32, Reply>,
    running: HashMap<u32, oneshot::Sender<u32>>,
}

impl Loading {
    pub(super) fn new(channel: UnixStream) -> Self {
        let (input, output) = channel.into_split();
        Self {
            frames: Frames::new(input),
            output,
        }
    }

    pub(super) async fn first_word(mut self) -> io::Result<FirstWord> {
        match self.frames.next().await? {
            Some(message) if message.kind == b'U' => Ok(FirstWord::Up(self.up())),
            Some(message) if message.kind == b'X' => Ok(FirstWord::Failed(message.text())),
            Some(message) => Err(message.unexpected()),
            None => Ok(FirstWord::Gone),
        }
    }

    fn up(self) -> Zygote {
        let (forks, orders) = mpsc::channel(FORK_ORDERS_MAX);
        let task = Task {
            frames: self.frames,
            output: self.output,
            orders,
            forking: HashMap::new(),
            running: HashMap::new(),
        };
        tokio::spawn(task.run());
        Zygote { forks }
    }
}

impl Zygote {
    /// Forks a worker.
    pub(super) async fn fork(&self, key: u32) -> Result<Forked, NotForked> {
        let (reply, forked) = oneshot::channel();
        let order = ForkOrder { key, reply };
        self.forks.send(order).await.map_err(|_| NotForked::Lost)?;
        forked.await.unwrap_or(Err(NotForked::Lost))
    }

    /// Returns when the zygote is lost.
    pub(super) async fn lost(&self) {
        self.forks.closed().await;
    }

    pub(super) fn is_lost(&self) -> bool {
        self.forks.is_closed()
    }
}

impl Task {
    /// Serves until the zygote is lost, or its last clone is dropped.
    async fn run(mut self) {
        if let Err(error) = self.serve().await {
            tracing::error!("the channel to a zygote failed: {error}");
        }
    }

    async fn serve(&mut self) -> io::Result<()> {
        loop {
            tokio::select! {
                order = self.orders.recv() => match order {
                    Some(order) => self.ask(order).await?,
                    None => return Ok(()),
                },
                message = self.frames.next() => match message? {
                    Some(message) => self.handle_message(&message)?,
                    None => return Ok(()),
                },
            }
        }
    }

    async fn ask(&mut self, order: ForkOrder) -> io::Result<()> {
        self.forking.insert(order.key, order.reply);
        self.output.write_all(&frame(b'F', Some(order.key))).await
    }

    fn handle_message(&mut self, message: &Message) -> io::Result<()> {
        match (message.kind, message.numbers()) {
            (b'f', Some([key, pid])) => self.forked(key, process(pid)?),
            (b'e', Some([key, status])) => self.ended(key, status),
            _ => return Err(message.unexpected()),
        }
        Ok(())
    }

    fn forked(&mut self, key: u32, pid: Pid) {
        let (tell, ended) = oneshot::channel();
        self.running.insert(key, tell);
        let reply = self.forking.remove(&key);
        let is_wanted = reply.is_some_and(|reply| reply.send(Ok(Forked { pid, ended })).is_ok());
        if !is_wanted {
            kill(pid);
        }
    }

    fn ended(&mut self, key: u32, status: u32) {
        // The task that wanted the worker may be gone.
        if let Some(tell) = self.running.remove(&key) {
            tell.send(status).ok();
        } else if let Some(reply) = self.forking.remove(&key) {
            reply.send(Err(NotForked::Failed(status))).ok();
        }
    }
}

fn process(pid: u32) -> io::Result<Pid> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "a process number of 0 or below"))
}

/// Kills a worker that no task waits for any more: it has no control connection whose end would
/// stop it.
fn kill(pid: Pid) {
    if let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) {
        // It may have ended by itself.
        pidfd_send_signal(&process, Signal::KILL).ok();
    }
}
