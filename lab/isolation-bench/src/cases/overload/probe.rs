//! Single requests in the midst of a flood, for the field that a load generator does not report.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde::Serialize;

use crate::cases::FIB;
use crate::http;

/// The flood has filled the queue by then.
const FIRST_AFTER: Duration = Duration::from_millis(1_200);
const PAUSE: Duration = Duration::from_millis(200);
/// Few, for each that is let in takes another's place.
const PROBES_MAX: usize = 4;

/// The probes that were rejected.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Probes {
    pub(super) refused: u32,
    /// Of these, those with `Retry-After`.
    pub(super) with_retry_after: u32,
}

/// Probes while `flood` runs.
pub(super) fn beside<R>(server: SocketAddr, flood: impl FnOnce() -> R) -> (R, Probes) {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let probing = scope.spawn(|| probe(server, &is_over));
        let result = flood();
        is_over.store(true, Ordering::Relaxed);
        // Its own panic would be the driver's: a probe that fails counts as none.
        (result, probing.join().unwrap_or_default())
    })
}

fn probe(server: SocketAddr, is_over: &AtomicBool) -> Probes {
    let mut probes = Probes::default();
    thread::sleep(FIRST_AFTER);
    for _ in 0..PROBES_MAX {
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        if let Ok(response) = http::get(server, FIB)
            && response.status == 503
        {
            probes.refused += 1;
            let seconds = response.field("Retry-After").map(str::parse::<u64>);
            probes.with_retry_after += u32::from(matches!(seconds, Some(Ok(1..))));
        }
        thread::sleep(PAUSE);
    }
    probes
}
