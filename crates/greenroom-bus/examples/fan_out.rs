//! The cost of a delivery: one publisher, many subscribers, each a task that receives all.
//!
//! `cargo run --release -p greenroom-bus --example fan_out`
//!
//! Prints nanoseconds for each delivery, receiving included, by wall-clock time and by processor
//! time of the whole program: the median and the range of the runs. On a machine that others use
//! too, only the latter means something. `one at a time` waits until all have received a message
//! before it publishes the next, so every delivery wakes a task; `in bursts` publishes 32 before it
//! waits.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use greenroom_bus::{Bus, Event, Subscription, Topic};
use rustix::time::{ClockId, clock_gettime};
use tokio::sync::Notify;

const SUBSCRIBERS: usize = 1_000;
const MESSAGES: usize = 3_200;
const BURST: usize = 32;
const RUNS: usize = 9;

/// The cost of a run.
struct Cost {
    wall: Duration,
    processor: Duration,
}

/// The deliveries of a burst that are still to be received.
#[derive(Default)]
struct Outstanding {
    deliveries: AtomicUsize,
    none: Notify,
}

impl Outstanding {
    fn received(&self) {
        if self.deliveries.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.none.notify_one();
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut current = tokio::runtime::Builder::new_current_thread();
    let mut two = tokio::runtime::Builder::new_multi_thread();
    two.worker_threads(2);
    for (name, builder) in [("one thread", &mut current), ("two threads", &mut two)] {
        for pattern in ["/picture/42/likes", "/picture/*/likes"] {
            for burst in [1, BURST] {
                let runs = (0..RUNS).map(|_| builder.build()?.block_on(run(pattern, burst)));
                let runs = runs.collect::<Result<Vec<_>, _>>()?;
                report(name, pattern, burst, &runs)?;
            }
        }
    }
    Ok(())
}

async fn run(pattern: &str, burst: usize) -> Result<Cost, Box<dyn std::error::Error>> {
    let bus = Bus::in_process();
    let outstanding = Arc::new(Outstanding::default());
    let readers: Vec<_> = (0..SUBSCRIBERS)
        .map(|_| {
            Ok(tokio::spawn(read(
                bus.subscribe(pattern)?,
                Arc::clone(&outstanding),
            )))
        })
        .collect::<Result<_, greenroom_bus::SubscribeError>>()?;
    let publisher = tokio::spawn(async move {
        let topic = Topic::new("/picture/42/likes")?;
        let (begin, used_before) = (Instant::now(), processor_time());
        for _ in 0..MESSAGES / burst {
            outstanding
                .deliveries
                .store(burst * SUBSCRIBERS, Ordering::Release);
            for _ in 0..burst {
                bus.try_publish(&topic, Bytes::from_static(b"ada likes it"))?;
            }
            outstanding.none.notified().await;
        }
        Ok::<_, greenroom_bus::PublishError>(Cost {
            wall: begin.elapsed(),
            processor: processor_time().saturating_sub(used_before),
        })
    });
    let cost = publisher.await??;
    for reader in readers {
        assert_eq!(
            reader.await?,
            MESSAGES,
            "every subscriber has received every message"
        );
    }
    Ok(cost)
}

async fn read(mut subscription: Subscription, outstanding: Arc<Outstanding>) -> usize {
    let mut messages = 0;
    while let Some(event) = subscription.recv().await {
        if let Event::Message(message) = event {
            messages += usize::from(!message.payload().is_empty());
            outstanding.received();
        }
    }
    messages
}

/// Returns the processor time of all threads of this process.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
}

fn report(name: &str, pattern: &str, burst: usize, runs: &[Cost]) -> io::Result<()> {
    let way = if burst == 1 {
        "one at a time"
    } else {
        "in bursts"
    };
    let wall = quantiles(runs.iter().map(|cost| cost.wall));
    let processor = quantiles(runs.iter().map(|cost| cost.processor));
    writeln!(
        io::stdout(),
        "{name:<11} {pattern:<18} {way:<13} ns a delivery: wall {wall}, processor {processor}"
    )
}

fn quantiles(durations: impl Iterator<Item = Duration>) -> String {
    let deliveries = (MESSAGES * SUBSCRIBERS) as u128;
    let mut nanos: Vec<_> = durations
        .map(|duration| duration.as_nanos() / deliveries)
        .collect();
    nanos.sort_unstable();
    let (least, median, most) = (nanos[0], nanos[RUNS / 2], nanos[RUNS - 1]);
    format!("{median:>3} ({least} to {most})")
}
