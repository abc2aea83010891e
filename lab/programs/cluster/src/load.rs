use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use tokio::runtime::Handle;
use tokio::task::{JoinHandle, JoinSet, spawn_blocking};

use crate::window::Window;
use crate::{ENTITIES, PAUSE, Peer, Questions};

type Figures = BTreeMap<&'static str, f64>;

/// Asks under way in a closed loop.
const OUTSTANDING: u64 = 64;
/// Messages told between two questions for how many came.
const TELLS: u64 = 1_000;
/// Ticks per second at most.
const TICKS_MAX: u64 = 1_000;
/// The time before the first ask of an open loop.
const LEAD: Duration = Duration::from_millis(100);

/// Asks at a rate, whatever becomes of the asks before; latency counts from when one was due.
pub(crate) async fn at_a_rate<P: Peer>(peer: &P, wanted: &Questions) -> anyhow::Result<Figures> {
    closed(lasting(wanted.warm_up), asking(peer)).await?;
    tokio::time::sleep(PAUSE).await;
    let window = Window::begin("ask")?;
    let (asking, rate, seconds) = (peer.clone(), wanted.rate, wanted.seconds);
    let runtime = Handle::current();
    // A thread of its own: tokio's timers are up to a millisecond late.
    let paced = spawn_blocking(move || paced(&asking, rate, seconds, &runtime));
    let (asked, mut late) = paced.await?;
    let all = asked.len();
    let mut spent = Vec::with_capacity(all);
    for ask in asked {
        spent.extend(ask.await?.ok());
    }
    window.end(spent.len() as u64)?;
    spent.sort_unstable();
    late.sort_unstable();
    Ok(Figures::from([
        ("p50_ms", percentile(50, &spent)),
        ("p99_ms", percentile(99, &spent)),
        ("late_p50_ms", percentile(50, &late)),
        ("failed", count((all - spent.len()) as u64)),
    ]))
}

type Asked = Vec<JoinHandle<anyhow::Result<Duration>>>;

fn paced<P: Peer>(peer: &P, rate: u64, seconds: u64, runtime: &Handle) -> (Asked, Vec<Duration>) {
    let ticks = rate.min(TICKS_MAX);
    let burst = (rate / TICKS_MAX).max(1);
    let start = Instant::now() + LEAD;
    let (mut asked, mut late) = (Vec::new(), Vec::new());
    for tick in 0..ticks * seconds {
        let due = start + Duration::from_nanos(tick * 1_000_000_000 / ticks);
        thread::sleep(due.saturating_duration_since(Instant::now()));
        late.push(due.elapsed());
        for number in 0..burst {
            let peer = peer.clone();
            let ask = async move { peer.ask(number).await.map(|_| due.elapsed()) };
            asked.push(runtime.spawn(ask));
        }
    }
    (asked, late)
}

fn percentile(percent: usize, sorted: &[Duration]) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100);
    let found = sorted.get(rank.saturating_sub(1));
    found.map_or(0.0, |spent| spent.as_secs_f64() * 1e3)
}

/// As many asks as go with so many outstanding, then tells, then asks of entities.
pub(crate) async fn flood<P: Peer>(peer: &P, wanted: &Questions) -> anyhow::Result<Figures> {
    let mut figures = Figures::new();
    figures.insert("ask_rate", rate("ask", wanted, asking(peer)).await?);
    figures.extend(tells(peer, wanted).await?);
    if P::HAS_ENTITIES {
        let peer = peer.clone();
        let ask = move |number: u64| {
            let peer = peer.clone();
            async move {
                let id = format!("e{}", number % ENTITIES);
                peer.ask_entity(id, number).await
            }
        };
        figures.insert("entity_rate", rate("entity", wanted, ask).await?);
    }
    Ok(figures)
}

async fn rate<F, R>(name: &'static str, wanted: &Questions, ask: F) -> anyhow::Result<f64>
where
    F: Fn(u64) -> R + Clone + Send + Sync + 'static,
    R: Future<Output = anyhow::Result<u64>> + Send,
{
    closed(lasting(wanted.warm_up), ask.clone()).await?;
    let window = Window::begin(name)?;
    let begin = Instant::now();
    let done = closed(lasting(wanted.seconds), ask).await?;
    let spent = begin.elapsed();
    window.end(done)?;
    Ok(count(done) / spent.as_secs_f64())
}

fn asking<P: Peer>(
    peer: &P,
) -> impl Fn(u64) -> futures_util::future::BoxFuture<'static, anyhow::Result<u64>> + Clone + use<P>
{
    let peer = peer.clone();
    move |number| {
        let peer = peer.clone();
        Box::pin(async move { peer.ask(number).await })
    }
}

fn lasting(seconds: u64) -> impl Fn(u64) -> bool + Clone {
    let end = Instant::now() + Duration::from_secs(seconds);
    move |_| Instant::now() < end
}

/// Asks with so many outstanding while it goes on; returns how many were replied to.
async fn closed<F, R>(
    goes_on: impl Fn(u64) -> bool + Clone + Send + 'static,
    ask: F,
) -> anyhow::Result<u64>
where
    F: Fn(u64) -> R + Clone + Send + Sync + 'static,
    R: Future<Output = anyhow::Result<u64>> + Send,
{
    let next = Arc::new(AtomicU64::new(0));
    let mut workers = JoinSet::new();
    for _ in 0..OUTSTANDING {
        let (goes_on, ask, next) = (goes_on.clone(), ask.clone(), Arc::clone(&next));
        workers.spawn(async move {
            let mut done = 0;
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if !goes_on(number) {
                    return anyhow::Ok(done);
                }
                ensure!(ask(number).await? == number + 1, "a wrong reply");
                done += 1;
            }
        });
    }
    let done = workers.join_all().await.into_iter();
    done.sum::<anyhow::Result<u64>>().context("an ask failed")
}

/// Batches of messages, each with a question for how many came.
async fn tells<P: Peer>(peer: &P, wanted: &Questions) -> anyhow::Result<Figures> {
    batches(peer, wanted.warm_up).await?;
    let before = peer.told().await?;
    let window = Window::begin("tell")?;
    let begin = Instant::now();
    let sent = batches(peer, wanted.seconds).await?;
    let told = peer.told().await? - before;
    let seconds = begin.elapsed().as_secs_f64();
    window.end(told)?;
    Ok(Figures::from([
        ("tell_rate", count(told) / seconds),
        ("lost", count(sent - told)),
    ]))
}

async fn batches<P: Peer>(peer: &P, seconds: u64) -> anyhow::Result<u64> {
    let goes_on = lasting(seconds);
    let mut sent = 0;
    while goes_on(sent) {
        for number in 0..TELLS {
            peer.tell(number).await?;
        }
        sent += TELLS;
        peer.told().await?;
    }
    Ok(sent)
}

/// Asks each of so many entities once, so that each is activated.
pub(crate) async fn entities<P: Peer>(peer: &P, wanted: &Questions) -> anyhow::Result<Figures> {
    closed(lasting(wanted.warm_up), asking(peer)).await?;
    let (peer, entities) = (peer.clone(), wanted.entities);
    let window = Window::begin("entities")?;
    let begin = Instant::now();
    let ask = move |number: u64| {
        let peer = peer.clone();
        async move { peer.ask_entity(format!("new{number}"), number).await }
    };
    let activated = closed(move |number| number < entities, ask).await?;
    let spent = begin.elapsed();
    tokio::time::sleep(PAUSE).await;
    window.end(activated)?;
    let activated = count(activated);
    let rate = activated / spent.as_secs_f64();
    Ok(Figures::from([("rate", rate), ("entities", activated)]))
}

#[expect(clippy::cast_precision_loss, reason = "messages of one run")]
fn count(count: u64) -> f64 {
    count as f64
}
