//! One server under load, from its start to its end.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde::Serialize;

use crate::args::Plan;
use crate::client::{Clients, Kind};
use crate::counts::Counts;
use crate::server::{Contestant, Place, Server};

/// Load before the first upgrade and after the last one.
const LOAD_ALONE: Duration = Duration::from_secs(3);

/// The counts of one server's clients.
#[derive(Debug, Serialize)]
pub(crate) struct Measured {
    #[serde(skip)]
    pub(crate) contestant: Contestant,
    pub(crate) upgrades: u32,
    /// Seconds from the first upgrade to the last one's end.
    pub(crate) seconds: f64,
    /// The most processes at once.
    pub(crate) processes: usize,
    pub(crate) counts: BTreeMap<Kind, Counts>,
    /// Something that went wrong with the server itself, such as an upgrade that did not happen.
    pub(crate) error: Option<String>,
}

/// Measures one server. What goes wrong with it is part of the result.
pub(crate) fn measure(
    contestant: Contestant,
    kinds: &[Kind],
    plan: Plan,
    upstream: SocketAddr,
    greenroom: &Path,
) -> Measured {
    eprintln!("{} …", contestant.name());
    let mut measured = Measured {
        contestant,
        upgrades: 0,
        seconds: 0.0,
        processes: 0,
        counts: BTreeMap::new(),
        error: None,
    };
    let outcome = Place::new(contestant, upstream, greenroom)
        .and_then(|place| under_load(&mut measured, kinds, plan, &place));
    measured.error = outcome.err().map(|error| format!("{error:#}"));
    measured
}

fn under_load(
    measured: &mut Measured,
    kinds: &[Kind],
    plan: Plan,
    place: &Place,
) -> anyhow::Result<()> {
    let contestant = measured.contestant;
    let kinds: Vec<Kind> = kinds
        .iter()
        .copied()
        .filter(|kind| contestant.serves(*kind))
        .collect();
    let mut server = contestant.start(place)?;
    // The upgrades keep this thread; one other is enough for the load.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    let clients = {
        let _entered = runtime.enter();
        Clients::start(place.target, &place.certificate(), &kinds, plan.transfer)?
    };
    thread::sleep(LOAD_ALONE);
    let outcome = upgrades(measured, server.as_mut(), plan);
    thread::sleep(LOAD_ALONE);
    measured.counts = runtime.block_on(clients.end())?;
    outcome
}

fn upgrades(measured: &mut Measured, server: &mut dyn Server, plan: Plan) -> anyhow::Result<()> {
    let begin = Instant::now();
    while measured.upgrades < plan.upgrades && begin.elapsed() < plan.upgrades_time_max {
        let number = measured.upgrades + 1;
        server
            .upgrade()
            .with_context(|| format!("upgrade {number}"))?;
        measured.upgrades = number;
        measured.seconds = begin.elapsed().as_secs_f64();
        measured.processes = measured.processes.max(server.family().size());
        thread::sleep(plan.pause);
    }
    server.finish().context("after the last upgrade")
}
