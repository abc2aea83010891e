//! Replicas behind a balancer, one of which is killed under load.

use std::future::Future;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{interval, sleep};

use crate::api::{Client, Site, User};
use crate::feed::{Returned, Returning, ends, likes_topic};
use crate::replicas::Replicas;

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

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The site's process
    #[arg(long)]
    pid: i32,
}

/// A request through the balancer.
#[derive(Clone, Copy, Debug)]
struct Request {
    begun: Instant,
    ended: Instant,
    failed: bool,
}

/// Requests that are sent until they are stopped.
#[derive(Default)]
struct Traffic {
    tasks: JoinSet<()>,
    ended: Arc<Mutex<Vec<Request>>>,
}

impl Options {
    pub(crate) async fn run(&self, client: &Client) -> anyhow::Result<Value> {
        let replicas = Replicas::of(self.pid)?;
        let pictures = Site::fill(client, PICTURES).await?.pictures;
        let topics: Vec<String> = pictures.iter().map(|id| likes_topic(id)).collect();
        let user = client.sign_up("liker").await?;
        let url = client.origin.replace("http:", "ws:") + "/feed";
        let feed = Returning::gather(&url, CLIENTS, &topics).await?;
        let traffic = Traffic::start(client, &user, &pictures);
        sleep(BEFORE).await;
        let killed = replicas.kill_one()?;
        sleep(AFTER).await;
        let requests = traffic.end().await;
        sleep(SETTLING).await;
        let returned = feed.end().await?;
        let ends = ends(&url, &topics).await?;
        let wrong = |client: &Returned| client.wrong + u64::from(client.last != ends);
        let mut figures = figures(&killed, &requests, &returned);
        figures["events"] = json!(ends.values().sum::<u64>());
        figures["wrong"] = json!(returned.iter().map(wrong).sum::<u64>());
        Ok(figures)
    }
}

impl Traffic {
    fn start(client: &Client, user: &User, pictures: &[String]) -> Self {
        let mut traffic = Self::default();
        let ended = &traffic.ended;
        traffic
            .tasks
            .spawn(read_timeline(client.clone(), Arc::clone(ended)));
        for picture in pictures {
            let (client, user, picture) = (client.clone(), user.clone(), picture.clone());
            traffic
                .tasks
                .spawn(like(client, user, picture, Arc::clone(ended)));
        }
        traffic
    }

    /// Stops, and returns all requests with their results.
    async fn end(mut self) -> Vec<Request> {
        self.tasks.shutdown().await;
        std::mem::take(&mut self.ended.lock())
    }
}

/// Reads at fixed times, regardless of the reads before.
async fn read_timeline(client: Client, ended: Arc<Mutex<Vec<Request>>>) {
    let mut ticks = interval(READ_EVERY);
    let mut reads = JoinSet::new();
    loop {
        ticks.tick().await;
        while reads.try_join_next().is_some() {}
        let (client, ended) = (client.clone(), Arc::clone(&ended));
        reads.spawn(async move { note(&ended, client.read("/api/timeline")).await });
    }
}

/// Likes one picture, one request after the other.
async fn like(client: Client, user: User, picture: String, ended: Arc<Mutex<Vec<Request>>>) {
    let mut ticks = interval(LIKE_EVERY);
    for likes in [true, false].into_iter().cycle() {
        ticks.tick().await;
        note(&ended, async {
            client.set_like(&user, &picture, likes).await.map(drop)
        })
        .await;
    }
}

async fn note(ended: &Mutex<Vec<Request>>, request: impl Future<Output = anyhow::Result<()>>) {
    let begun = Instant::now();
    let result = request.await;
    if let Err(error) = &result {
        eprintln!("a request failed: {error:#}");
    }
    ended.lock().push(Request {
        begun,
        ended: Instant::now(),
        failed: result.is_err(),
    });
}

fn figures(killed: &RangeInclusive<Instant>, requests: &[Request], returned: &[Returned]) -> Value {
    let count = |is_one: &dyn Fn(&&Request) -> bool| requests.iter().filter(is_one).count();
    let held =
        |request: &Request| request.begun <= *killed.end() && request.ended >= *killed.start();
    let millis = |from: Instant, to: Instant| (to - from).as_secs_f64() * 1e3;
    let breaks = returned.iter().flat_map(|client| &client.breaks);
    let back: Vec<f64> = breaks
        .filter(|(broken, _)| broken >= killed.start())
        .map(|(_, back)| millis(*killed.start(), *back))
        .collect();
    let lasted = requests
        .iter()
        .map(|request| millis(request.begun, request.ended));
    json!({
        "requests": requests.len(),
        "held": count(&|request| held(request)),
        "failed_held": count(&|request| request.failed && held(request)),
        "failed_beyond": count(&|request| request.failed && request.begun > *killed.end()),
        "failed_before": count(&|request| request.failed && request.ended < *killed.start()),
        "max_ms": lasted.fold(0.0, f64::max),
        "broken": back.len(),
        "back_ms": back.into_iter().fold(0.0, f64::max),
    })
}
