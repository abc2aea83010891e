//! Posts over keep-alive connections, sends the server a signal in the middle of that, and reports
//! the outcome of each request. Nothing is sent twice, and no client reconnects.

mod client;
mod server;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use anyhow::Context as _;
use clap::Parser;
use http_bench_clients::{Outcomes, Target};
use tokio::runtime::Builder;
use tokio::sync::Semaphore;
use tokio::task::LocalSet;
use tokio::time::{Instant, sleep, timeout_at};

use crate::client::Client;
use crate::server::{EndSignal, Server};

#[derive(Debug, Parser)]
struct Options {
    /// <http://127.0.0.1:PORT/PATH>
    #[arg(long)]
    url: Target,
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

/// The state that all clients share.
struct All {
    target: Target,
    request: Vec<u8>,
    pause_max: Duration,
    /// Clients whose first request has come to an end.
    began: Semaphore,
    /// Released when all have begun: a busy server may accept slowly.
    go_on: Semaphore,
    /// True once the server was sent the signal.
    is_signalled: Cell<bool>,
    /// The time at which the load ends.
    until: Cell<Instant>,
    outcomes: RefCell<Outcomes>,
}

/// Longest time in which all first requests come to an end.
const BEGIN_MAX: Duration = Duration::from_secs(30);

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let outcomes = LocalSet::new().block_on(&runtime, run(&options))?;
    println!("{}", serde_json::to_string(&outcomes)?);
    Ok(())
}

async fn run(options: &Options) -> anyhow::Result<Outcomes> {
    let server = Server::new(options.process)?;
    let all = Rc::new(All {
        target: options.url.clone(),
        request: options.url.post("hello"),
        pause_max: Duration::from_millis(options.pause_millis),
        began: Semaphore::new(0),
        go_on: Semaphore::new(0),
        is_signalled: Cell::new(false),
        until: Cell::new(Instant::now() + BEGIN_MAX),
        outcomes: RefCell::default(),
    });
    let mut clients = Vec::new();
    for index in 0..options.connections {
        let client = Client::connect(index, &all).await?;
        clients.push(tokio::task::spawn_local(client.post()));
    }
    let began = all.began.acquire_many(options.connections);
    let began = timeout_at(all.until.get(), began).await;
    began
        .context("first requests without a response")??
        .forget();
    all.go_on.add_permits(clients.len());
    let load = Duration::from_secs(options.seconds);
    let patience = Duration::from_secs(options.seconds_after);
    all.until.set(Instant::now() + load + patience);
    sleep(load).await;
    let signalled = Instant::now();
    server.send(options.signal)?;
    all.is_signalled.set(true);
    let ended = timeout_at(all.until.get(), server.ended()).await;
    let ended = ended.ok().transpose()?;
    let ended_ms = ended.map(|()| signalled.elapsed().as_secs_f64() * 1_000.0);
    for client in clients {
        let outcome = client.await??;
        all.outcomes.borrow_mut().count(outcome);
    }
    let mut outcomes = all.outcomes.take();
    outcomes.ended_ms = ended_ms;
    Ok(outcomes)
}
