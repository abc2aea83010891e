//! Clients that post over kept connections until the server ends, which it is told in the midst of
//! it. Nothing is sent twice, and no client reconnects.

use std::cell::{Cell, RefCell};
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::{Parser, ValueEnum};
use fastrand::Rng;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout_at};

use crate::{Target, response};

/// The interval of looks whether the server has ended.
const LOOK: Duration = Duration::from_millis(5);
/// Longest time in which all first requests come to an end.
const BEGIN_MAX: Duration = Duration::from_secs(30);

#[derive(Debug, Parser)]
pub(crate) struct Options {
    #[command(flatten)]
    target: Target,
    /// Number of clients, each with its connection
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=19_900))]
    connections: u32,
    /// Longest pause of a client between a response and its next request; each is by chance
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=10_000))]
    pause_millis: u64,
    /// Seconds of load before the signal
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=30))]
    seconds: u64,
    /// Seconds after which the load ends in any case
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=30))]
    seconds_after: u64,
    /// The server's process
    #[arg(long)]
    process: i32,
    /// Signal that ends the server
    #[arg(long, value_enum, default_value_t = EndSignal::Term)]
    signal: EndSignal,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum EndSignal {
    Quit,
    Term,
}

/// The end of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// By a response with `Connection: close`.
    Told,
    /// By the end of its connection between two requests: nothing was lost.
    Idle,
    /// Its request was sent in whole, and the connection ended in order (FIN) before the response.
    LostByEnd,
    /// Its request was sent in whole, and the connection was reset before the response ended.
    LostByReset,
    /// Its request was sent in whole, and neither a response nor an end came in time.
    LostInSilence,
    /// The connection broke while the request was being sent.
    Unsent,
    /// The server responded until the load ended.
    StillServed,
}

/// The state that all clients share.
struct All {
    target: Target,
    request: Vec<u8>,
    pause_millis_max: u64,
    /// Clients whose first request has come to an end.
    began: Semaphore,
    /// Released when all have begun: a busy server may accept slowly.
    go_on: Semaphore,
    is_signalled: Cell<bool>,
    /// The time at which the load ends.
    until: Cell<Instant>,
    answered: Cell<u32>,
    refused: Cell<u32>,
    outcomes: RefCell<Vec<Outcome>>,
}

pub(crate) async fn run(options: &Options) -> anyhow::Result<Value> {
    let pid = Pid::from_raw(options.process).context("no process")?;
    let server = pidfd_open(pid, PidfdFlags::NONBLOCK).context("the server")?;
    let all = Rc::new(All {
        request: options
            .target
            .request("POST", "Content-Length: 5\r\n", "hello"),
        target: options.target.clone(),
        pause_millis_max: options.pause_millis,
        began: Semaphore::new(0),
        go_on: Semaphore::new(0),
        is_signalled: Cell::new(false),
        until: Cell::new(Instant::now() + BEGIN_MAX),
        answered: Cell::new(0),
        refused: Cell::new(0),
        outcomes: RefCell::default(),
    });
    let mut clients = Vec::new();
    for index in 0..options.connections {
        let stream = all.target.connect(index, 1).await?;
        let rng = Rng::with_seed(index.into());
        clients.push(tokio::task::spawn_local(client(
            Rc::clone(&all),
            stream,
            rng,
        )));
    }
    let began = all.began.acquire_many(options.connections);
    let began = timeout_at(all.until.get(), began).await;
    began
        .context("first requests without a response")??
        .forget();
    all.go_on.add_permits(clients.len());
    let load = Duration::from_secs(options.seconds);
    all.until
        .set(Instant::now() + load + Duration::from_secs(options.seconds_after));
    sleep(load).await;
    let signalled = Instant::now();
    let signal = match options.signal {
        EndSignal::Quit => Signal::QUIT,
        EndSignal::Term => Signal::TERM,
    };
    pidfd_send_signal(&server, signal).context("the signal")?;
    all.is_signalled.set(true);
    let ended = timeout_at(all.until.get(), end_of(&server)).await;
    let ended_ms = ended
        .is_ok()
        .then(|| signalled.elapsed().as_secs_f64() * 1e3);
    for client in clients {
        client.await??;
    }
    Ok(all.told(ended_ms))
}

/// Waits until a process has ended.
async fn end_of(process: &OwnedFd) {
    let has_ended = || {
        let mut ends = [PollFd::new(process, PollFlags::IN)];
        poll(&mut ends, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    };
    while !has_ended() {
        sleep(LOOK).await;
    }
}

async fn client(all: Rc<All>, mut stream: TcpStream, mut rng: Rng) -> anyhow::Result<()> {
    let mut first = Some(BeganOnce(Rc::clone(&all)));
    let outcome = loop {
        let head = match exchange(&all, &mut stream).await? {
            Ok(head) => head,
            Err(outcome) => break outcome,
        };
        match (head.status, all.is_signalled.get()) {
            (200, true) => all.answered.set(all.answered.get() + 1),
            (200, false) => {}
            _ => all.refused.set(all.refused.get() + 1),
        }
        if !head.keeps {
            break Outcome::Told;
        }
        if let Some(first) = first.take() {
            drop(first);
            all.go_on.acquire().await?.forget();
        }
        if all.pause_millis_max > 0 {
            sleep(Duration::from_millis(rng.u64(..=all.pause_millis_max))).await;
        }
        if Instant::now() >= all.until.get() {
            break Outcome::StillServed;
        }
        if has_ended(&stream) {
            break Outcome::Idle;
        }
    };
    all.outcomes.borrow_mut().push(outcome);
    Ok(())
}

/// Counts a client as having begun when its first request has come to an end, whatever that is.
struct BeganOnce(Rc<All>);

impl Drop for BeganOnce {
    fn drop(&mut self) {
        self.0.began.add_permits(1);
    }
}

/// Posts once; a response that is none of HTTP is an error of the measurement.
async fn exchange(
    all: &All,
    stream: &mut TcpStream,
) -> anyhow::Result<Result<response::Head, Outcome>> {
    if stream.write_all(&all.request).await.is_err() {
        return Ok(Err(Outcome::Unsent));
    }
    let Ok(read) = timeout_at(all.until.get(), response::read(stream)).await else {
        return Ok(Err(Outcome::LostInSilence));
    };
    Ok(match read {
        Ok(head) => Ok(head),
        Err(error) => Err(match error.kind() {
            ErrorKind::UnexpectedEof => Outcome::LostByEnd,
            // Linux says the latter if the connection was ended first, and then reset.
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => Outcome::LostByReset,
            _ => bail!("reading a response: {error}"),
        }),
    })
}

/// Asks the system, as pools of connections do, whether the server has ended the connection.
fn has_ended(stream: &TcpStream) -> bool {
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    !matches!(recv(stream, &mut [0; 1][..], flags), Err(Errno::AGAIN))
}

impl All {
    fn told(&self, ended_ms: Option<f64>) -> Value {
        let outcomes = self.outcomes.borrow();
        let count = |of: Outcome| outcomes.iter().filter(|outcome| **outcome == of).count();
        let by_end = count(Outcome::LostByEnd) + count(Outcome::LostInSilence);
        json!({
            "answered": self.answered.get(),
            "refused": self.refused.get(),
            "told": count(Outcome::Told),
            "idle": count(Outcome::Idle),
            "lost_by_end": by_end,
            "lost_by_reset": count(Outcome::LostByReset),
            "lost": by_end + count(Outcome::LostByReset),
            "unsent": count(Outcome::Unsent),
            "still_served": count(Outcome::StillServed),
            "ended_ms": ended_ms,
        })
    }
}
