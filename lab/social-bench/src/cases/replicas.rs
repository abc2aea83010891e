//! Three replicas behind `HAProxy`, one of which is killed under load.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use bench_kit::rounds::{Row, samples};
use bench_kit::{Report, Verdict, cell, table};
use parking_lot::Mutex;
use serde::Serialize;
use tempfile::TempDir;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::{Context, MILLIS_PER_SECOND};
use crate::feed::{Crowd, Returned, Returning, likes_topic};
use crate::site::{Balancer, Client, Social, Stores, User};

const REPLICAS: usize = 3;
const CLIENTS: usize = 100;
const PICTURES: usize = 5;
/// Interval of reads of the timeline: 50 a second.
const READ_EVERY: Duration = Duration::from_millis(20);
/// Interval of likes of a picture: 10 a second of all.
const LIKE_EVERY: Duration = Duration::from_millis(500);
/// Time of load before the kill, and after it.
const BEFORE: Duration = Duration::from_secs(3);
const AFTER: Duration = Duration::from_secs(8);
/// Time for the last events to arrive: the ends of topics are polled every five seconds.
const SETTLING: Duration = Duration::from_secs(7);
const BACK_MS_MAX: f64 = 2_000.0;

#[derive(Clone, Copy, Debug, Serialize)]
struct Sample {
    requests: f64,
    in_flight: f64,
    failed_held: f64,
    failed_beyond: f64,
    failed_before: f64,
    longest_ms: f64,
    broken: f64,
    back_ms: f64,
    events: f64,
    wrong: f64,
}

/// A request through the balancer.
#[derive(Clone, Copy, Debug)]
struct Request {
    begun: Instant,
    ended: Instant,
    failed: bool,
}

/// Requests that are sent until they are stopped.
struct Traffic {
    tasks: JoinSet<()>,
    ended: Arc<Mutex<Vec<Request>>>,
}

pub(super) fn run(context: &Context) -> anyhow::Result<Report> {
    let mut row = Row {
        name: "one of three killed".to_owned(),
        samples: Vec::new(),
    };
    let rounds = context.long_rounds();
    for round in 0..rounds {
        eprintln!("replicas, round {} of {rounds}", round + 1);
        row.samples.push(measure(context, round % REPLICAS)?);
    }
    Ok(Report {
        case: "replicas",
        title: "three replicas behind HAProxy, one killed under load".to_owned(),
        notes: vec![
            format!(
                "medians of {rounds} rounds (least–most), each with FerretDB, Redis, HAProxy \
                and replicas of its own; {CLIENTS} clients of the feed, 50 reads of the timeline \
                and 10 likes a second, all through HAProxy; `kill -9` of a replica after \
                {BEFORE:?}"
            ),
            "held: failed, and was under way when the replica was killed; beyond: failed, and was \
             sent later. HAProxy sends again what no replica took, and of what was sent only GET; \
             a like that the killed replica held fails"
                .to_owned(),
            "back: from the kill until all watches of a client whose connection broke are in \
             force again at another replica, from where it was; the slowest client. Wrong: events \
             that a client did not get, got twice or out of order, from the first to the last"
                .to_owned(),
        ],
        table: render(&row),
        verdicts: verdicts(&row).into(),
        samples: samples(&[row]),
    })
}

fn measure(context: &Context, victim: usize) -> anyhow::Result<Sample> {
    let directory = TempDir::new().context("a directory")?;
    let stores = Stores::start(&context.ferretdb, directory.path())?;
    let started = (0..REPLICAS).map(|number| {
        let name = format!("social-{number}");
        let program = context.social()?;
        Social::start(program, &name, directory.path(), stores.storage(), "")
    });
    let mut replicas: Vec<Social> = started.collect::<anyhow::Result<_>>()?;
    let addresses: Vec<_> = replicas.iter().map(Social::address).collect();
    let balancer = Balancer::start(directory.path(), &addresses)?;
    let client = Client::new(balancer.url(""))?;
    let pictures = context.add_pictures(&client, "owner", PICTURES)?.ids;
    let topics: Vec<String> = pictures.iter().map(|id| likes_topic(id)).collect();
    let (killed, requests, returned) = context.runtime.block_on(async {
        let user = client.sign_up("liker").await?;
        let url = format!("ws://{}/feed", balancer.address());
        let feed = Returning::gather(&url, CLIENTS, &topics).await?;
        let traffic = Traffic::start(&client, &user, &pictures);
        sleep(BEFORE).await;
        let killed = replicas[victim].kill()?;
        sleep(AFTER).await;
        let requests = traffic.end().await;
        sleep(SETTLING).await;
        anyhow::Ok((killed, requests, feed.end().await?))
    })?;
    let ends = Crowd::gather(&[balancer.address()], 1, 1, |_| topics.clone())?.ends;
    let missing = |client: &Returned| client.wrong + client.resets + u64::from(client.last != ends);
    let wrong: u64 = returned.iter().map(missing).sum();
    Ok(Sample::of(
        &killed,
        &requests,
        &returned,
        wrong,
        ends.values().sum(),
    ))
}

impl Traffic {
    fn start(client: &Client, user: &User, pictures: &[String]) -> Self {
        let ended = Arc::default();
        let mut tasks = JoinSet::new();
        tasks.spawn(read_timeline(client.clone(), Arc::clone(&ended)));
        for picture in pictures {
            let user = user.at(client.clone());
            tasks.spawn(like(user, picture.clone(), Arc::clone(&ended)));
        }
        Self { tasks, ended }
    }

    /// Stops, and returns all requests with their results.
    async fn end(mut self) -> Vec<Request> {
        self.tasks.abort_all();
        while self.tasks.join_next().await.is_some() {}
        let mut ended = self.ended.lock();
        std::mem::take(&mut ended)
    }
}

/// Reads at fixed times, regardless of the reads before.
async fn read_timeline(client: Client, ended: Arc<Mutex<Vec<Request>>>) {
    let mut ticks = interval(READ_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let mut reads = JoinSet::new();
    loop {
        ticks.tick().await;
        while reads.try_join_next().is_some() {}
        let (client, ended) = (client.clone(), Arc::clone(&ended));
        reads.spawn(async move {
            let begun = Instant::now();
            let read = client.read("/api/timeline").await;
            note(&ended, begun, &read);
        });
    }
}

/// Likes one picture, one request after the other.
async fn like(user: User, picture: String, ended: Arc<Mutex<Vec<Request>>>) {
    let mut ticks = interval(LIKE_EVERY);
    let mut likes = false;
    loop {
        ticks.tick().await;
        likes = !likes;
        let begun = Instant::now();
        let result = user.set_like(&picture, likes).await;
        note(&ended, begun, &result.map(drop));
    }
}

fn note(ended: &Mutex<Vec<Request>>, begun: Instant, result: &anyhow::Result<()>) {
    if let Err(error) = result {
        eprintln!("a request failed: {error:#}");
    }
    let request = Request {
        begun,
        ended: Instant::now(),
        failed: result.is_err(),
    };
    ended.lock().push(request);
}

impl Sample {
    #[expect(clippy::cast_precision_loss, reason = "numbers far below 2^52")]
    fn of(
        killed: &RangeInclusive<Instant>,
        requests: &[Request],
        returned: &[Returned],
        wrong: u64,
        events: u64,
    ) -> Self {
        let count = |is_one: &dyn Fn(&Request) -> bool| {
            requests.iter().filter(|request| is_one(request)).count() as f64
        };
        let held =
            |request: &Request| request.begun <= *killed.end() && request.ended >= *killed.start();
        let breaks = returned.iter().flat_map(|client| &client.breaks);
        let after = breaks.filter(|(broken, _)| broken >= killed.start());
        let back: Vec<f64> = after
            .map(|(_, back)| (*back - *killed.start()).as_secs_f64() * MILLIS_PER_SECOND)
            .collect();
        let millis =
            |request: &Request| (request.ended - request.begun).as_secs_f64() * MILLIS_PER_SECOND;
        Self {
            requests: requests.len() as f64,
            in_flight: count(&held),
            failed_held: count(&|request| request.failed && held(request)),
            failed_beyond: count(&|request| request.failed && request.begun > *killed.end()),
            failed_before: count(&|request| request.failed && request.ended < *killed.start()),
            longest_ms: requests.iter().map(millis).fold(0.0, f64::max),
            broken: back.len() as f64,
            back_ms: back.iter().copied().fold(0.0, f64::max),
            events: events as f64,
            wrong: wrong as f64,
        }
    }
}

fn verdicts(row: &Row<Sample>) -> [Verdict; 5] {
    let most = |value: fn(&Sample) -> f64| Some(row.spread(value)?.max);
    let least = |value: fn(&Sample) -> f64| Some(row.spread(value)?.min);
    [
        Verdict::at_most(
            "requests that failed beyond those that the killed replica held, in any round",
            most(|sample| sample.failed_beyond),
            0.0,
            "",
        ),
        Verdict::at_most(
            "requests that failed before the kill, in any round",
            most(|sample| sample.failed_before),
            0.0,
            "",
        ),
        Verdict::at_most(
            "until the slowest client's feed is back, in any round",
            most(|sample| sample.back_ms),
            BACK_MS_MAX,
            " ms",
        ),
        Verdict::at_least(
            "clients whose connection broke, in any round",
            least(|sample| sample.broken),
            1.0,
            "",
        ),
        Verdict::at_most(
            "events lost, repeated or out of order, in any round",
            most(|sample| sample.wrong),
            0.0,
            "",
        ),
    ]
}

fn render(row: &Row<Sample>) -> String {
    let mut out = table(["", &row.name]);
    let mut line = |name: &str, value: fn(&Sample) -> f64| {
        out.add_row([name.to_owned(), cell(row.spread(value), 0)]);
    };
    line("requests", |sample| sample.requests);
    line("under way at the kill", |sample| sample.in_flight);
    line("failed, held", |sample| sample.failed_held);
    line("failed, beyond", |sample| sample.failed_beyond);
    line("failed before the kill", |sample| sample.failed_before);
    line("longest request ms", |sample| sample.longest_ms);
    line("clients whose connection broke", |sample| sample.broken);
    line("feed back, slowest ms", |sample| sample.back_ms);
    line("events of each client", |sample| sample.events);
    line("wrong", |sample| sample.wrong);
    out.to_string()
}
