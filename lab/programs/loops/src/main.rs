//! The two programs that the manual of `AnyEvent` measures loops with: on tokio, and on tokio with
//! the registry of deadlines that Greenroom's loops have.
//!
//! ```text
//! lab-loops watchers tokio|greenroom PAIRS
//! lab-loops servers tokio|greenroom PAIRS ACTIVE SECONDS
//! ```
//!
//! Prints one line of JSON: microseconds and bytes each.

#[expect(dead_code, reason = "connections need more of it than this program")]
#[path = "../../../../crates/greenroom-server/src/event_loop/registry.rs"]
mod registry;
mod servers;
mod timeouts;
mod watchers;
#[path = "../../../../crates/greenroom-server/src/event_loop/wheel.rs"]
mod wheel;

use std::env;
use std::io::{self, Write};
use std::rc::Rc;
use std::str::FromStr;

use anyhow::{Context, Result, bail};
use tokio::runtime::{Builder, LocalOptions};
use tokio::time::{Duration, Instant, sleep};

use timeouts::{Deadline, Home};

fn main() -> Result<()> {
    // As a loop of Greenroom's makes its runtime, without what watches it.
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build_local(LocalOptions::default())?;
    let figures = runtime.block_on(run())?;
    writeln!(io::stdout(), "{figures}")?;
    // Thousands of tasks need not be undone one by one.
    std::process::exit(0);
}

async fn run() -> Result<serde_json::Value> {
    let mut words = env::args().skip(1);
    let mut next = || words.next().context("see the first lines of main.rs");
    let (case, kind) = (next()?, next()?);
    let pairs = number(&next()?)?;
    match (case.as_str(), kind.as_str()) {
        ("watchers", "tokio") => {
            let soon = || Box::pin(sleep(Duration::ZERO));
            watchers::measure(pairs, soon, || ()).await
        }
        ("watchers", "greenroom") => {
            let home = Rc::<Home>::default();
            let soon = || Deadline::new(&home, Duration::ZERO);
            watchers::measure(pairs, soon, || home.tick()).await
        }
        ("servers", kind) => {
            let load = servers::Load {
                pairs,
                active: number(&next()?)?,
                time: Duration::from_secs_f64(number(&next()?)?),
            };
            servers_of(kind, &load).await
        }
        (case, _) => bail!("{case} is neither watchers nor servers"),
    }
}

async fn servers_of(kind: &str, load: &servers::Load) -> Result<serde_json::Value> {
    match kind {
        "tokio" => servers::measure(load, |hour| Box::pin(sleep(hour))).await,
        "greenroom" => {
            let home = Rc::<Home>::default();
            tokio::task::spawn_local(Rc::clone(&home).tick_forever());
            servers::measure(load, |hour| Deadline::new(&home, hour)).await
        }
        other => bail!("{other} is neither tokio nor greenroom"),
    }
}

fn number<T: FromStr>(word: &str) -> Result<T> {
    word.parse()
        .ok()
        .with_context(|| format!("{word} is no number that fits here"))
}

/// Microseconds since `begun`, for each of `number`.
fn micros_each(begun: Instant, number: usize) -> f64 {
    begun.elapsed().as_secs_f64() * 1e6 / as_float(number)
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn as_float(number: usize) -> f64 {
    number as f64
}
