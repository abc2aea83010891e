//! Starts workers for a generation.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;

use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use super::control::{Control, ReadyWorker};
use super::held::{self, Held};
use super::member::Member;
use super::order::Order;
use super::shared::Shared;
use super::tend;
use super::zygote::{NotForked, Zygote};
use crate::error::{EndStatus, StartError};
use crate::pool::Worker;

const PROCESS: &str = "a worker";

/// The mode of a worker without an event loop; as PROTOCOL.md says.
const BLOCKING: &str = "blocking";

/// Starts the workers of one generation.
#[derive(Clone)]
pub(super) struct Launcher {
    pub(super) shared: Arc<Shared>,
    pub(super) generation: u32,
    pub(super) zygote: Zygote,
    /// Closed when the generation is dropped.
    pub(super) orders: watch::Receiver<Order>,
    /// Held by all tasks that are responsible for a worker.
    pub(super) alive: mpsc::Sender<Infallible>,
}

impl Launcher {
    /// Forks a worker and waits until it is ready. If the future is dropped, the worker is killed.
    pub(super) async fn start_worker(&self) -> Result<ReadyWorker, StartError> {
        let limit = self.shared.settings.limits.start_timeout;
        let late = StartError::Timeout {
            application: self.shared.settings.name(),
            process: PROCESS,
            limit,
        };
        timeout(limit, self.load()).await.unwrap_or(Err(late))
    }

    /// Lets it take requests from now on.
    pub(super) fn activate(&self, ready: ReadyWorker) -> Arc<Member> {
        let member = Arc::clone(&ready.held.member);
        self.shared.pool.add(Worker::new(
            member.key,
            member.pid,
            self.shared.socket(member.key),
            member.mode() != BLOCKING,
        ));
        tokio::spawn(tend::tend(
            ready,
            Arc::clone(&self.shared),
            self.orders.clone(),
            self.alive.clone(),
        ));
        member
    }

    async fn load(&self) -> Result<ReadyWorker, StartError> {
        let key = self.shared.new_key();
        let forked = self.zygote.fork(key).await;
        let mut forked = forked.map_err(|error| self.not_forked(error))?;
        let process = held::process(forked.pid).map_err(|source| self.channel_error(source))?;
        let Some(process) = process else {
            return Err(self.ended(held::end_status(&mut forked.ended).await));
        };
        let mut held = Held::new(&self.shared, key, self.generation, forked, process);
        match self.first_word(key).await {
            Ok(Some((control, FirstWord::Ready(mode)))) => {
                held.member.note_ready(mode);
                Ok(ReadyWorker { held, control })
            }
            Ok(Some((_, FirstWord::Failed(message)))) => Err(StartError::Load {
                application: self.shared.settings.name(),
                message,
            }),
            Ok(None) => Err(self.ended(held.status().await)),
            Err(source) => Err(self.channel_error(source)),
        }
    }

    async fn first_word(&self, key: u32) -> io::Result<Option<(Control, FirstWord)>> {
        let Some(mut control) = Control::open(&self.shared, key).await? else {
            return Ok(None);
        };
        let Some(message) = control.frames.next().await? else {
            return Ok(None);
        };
        let word = match message.kind {
            b'R' => FirstWord::Ready(message.text()),
            b'X' => FirstWord::Failed(message.text()),
            _ => return Err(message.unexpected()),
        };
        Ok(Some((control, word)))
    }

    fn not_forked(&self, error: NotForked) -> StartError {
        match error {
            NotForked::Lost => self.channel_error(io::Error::new(
                io::ErrorKind::ConnectionReset,
                "its zygote is gone",
            )),
            NotForked::Failed(status) => self.ended(EndStatus(Some(EndStatus::of_wait(status)))),
        }
    }

    fn ended(&self, status: EndStatus) -> StartError {
        StartError::Ended {
            application: self.shared.settings.name(),
            process: PROCESS,
            status,
            said: String::new(),
        }
    }

    fn channel_error(&self, source: io::Error) -> StartError {
        StartError::Channel {
            application: self.shared.settings.name(),
            process: PROCESS,
            source,
        }
    }
}

enum FirstWord {
    /// The worker's mode.
    Ready(String),
    /// Perl's message.
    Failed(String),
}
