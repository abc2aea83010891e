//! Posts over keep-alive connections, has the server told to end in the middle of that, and tells what became of each
//! request. Nothing is sent twice and nobody connects anew.

mod client;
mod server;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use anyhow::Context as _;
use clap::Parser;
use http_bench_clients::{Fates, Target};
use tokio::runtime::Builder;
use tokio::sync::Semaphore;
use tokio::task::LocalSet;
use tokio::time::{Instant, sleep, timeout_at};

use crate::client::Client;
use crate::server::{Server, Told};

#[derive(Debug, Parser)]
struct Options {
    /// <http://127.0.0.1:PORT/PATH>
    #[arg(long)]
    url: Target,
    /// How many clients, each with its connection
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=19_900))]
    connections: u32,
    /// Longest pause of a client between a response and its next request; each is by chance
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=10_000))]
    pause_millis: u64,
    /// Seconds of load before the server is told to end
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=30))]
    seconds: u64,
    /// Seconds after which the load ends in any case
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=30))]
    seconds_after: u64,
    /// The server's process
    #[arg(long)]
    process: i32,
    /// How it is told to end
    #[arg(long, value_enum, default_value_t = Told::Term)]
    signal: Told,
}

/// What all clients share.
struct All {
    target: Target,
    request: Vec<u8>,
    pause_max: Duration,
    /// Clients whose first request has come to an end.
    began: Semaphore,
    /// Where all wait for that: a busy server may accept slowly.
    go_on: Semaphore,
    /// Whether the server was told to end.
    is_told: Cell<bool>,
    /// When the load ends.
    until: Cell<Instant>,
    fates: RefCell<Fates>,
}

/// Longest time in which all first requests come to an end.
const BEGIN_MAX: Duration = Duration::from_secs(30);

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let fates = LocalSet::new().block_on(&runtime, run(&options))?;
    println!("{}", serde_json::to_string(&fates)?);
    Ok(())
}

async fn run(options: &Options) -> anyhow::Result<Fates> {
    let server = Server::new(options.process)?;
    let all = Rc::new(All {
        target: options.url.clone(),
        request: options.url.post("hello"),
        pause_max: Duration::from_millis(options.pause_millis),
        began: Semaphore::new(0),
        go_on: Semaphore::new(0),
        is_told: Cell::new(false),
        until: Cell::new(Instant::now() + BEGIN_MAX),
        fates: RefCell::default(),
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
    let told = Instant::now();
    server.tell(options.signal)?;
    all.is_told.set(true);
    let ended = timeout_at(all.until.get(), server.ended()).await;
    let ended = ended.ok().transpose()?;
    let ended_ms = ended.map(|()| told.elapsed().as_secs_f64() * 1_000.0);
    for client in clients {
        let fate = client.await??;
        all.fates.borrow_mut().count(fate);
    }
    let mut fates = all.fates.take();
    fates.ended_ms = ended_ms;
    Ok(fates)
}
