//! Clients of HTTP/1.1 that keep their connections, or have one for each request. They send
//! nothing twice.

use std::time::Duration;

use super::connection::Stream;
use super::exchange::{Sent, exchange};
use super::{Load, Shape};
use crate::counts::{Counts, Failed, Failure};

/// Connections that may end unused before one takes a request.
const OPENS_MAX: usize = 5;

/// Sends requests until the load ends.
pub(crate) async fn run(load: Load, shape: Shape) -> Counts {
    let mut counts = Counts::default();
    let request = shape.request(&load);
    let mut kept = None;
    while load.goes_on() {
        let outcome = once(&load, &shape, &request, &mut kept, &mut counts).await;
        let has_failed = outcome.is_err();
        counts.count(outcome, load.seconds());
        load.pause(shape.pause_max, has_failed).await;
    }
    counts
}

async fn once(
    load: &Load,
    shape: &Shape,
    request: &[u8],
    kept: &mut Option<Stream>,
    counts: &mut Counts,
) -> Result<(), Failed> {
    for _ in 0..OPENS_MAX {
        let mut reused = kept.take();
        if let Some(stream) = &mut reused
            && stream.has_ended().await
        {
            counts.reopened += 1;
            reused = None;
        }
        let is_reused = reused.is_some();
        let mut stream = match reused {
            Some(stream) => stream,
            None => Stream::open(shape.address(load), shape.tls(load), None).await?,
        };
        match exchange(&mut stream, request, &shape.expected, is_reused).await? {
            Sent::Nothing => counts.reopened += 1,
            Sent::Kept if shape.keeps => {
                *kept = Some(stream);
                return Ok(());
            }
            Sent::Last if shape.keeps => {
                counts.reopened += 1;
                return Ok(());
            }
            Sent::Kept | Sent::Last => return Ok(()),
        }
    }
    let text = format!("{OPENS_MAX} connections ended before they took the request");
    Err(Failed(Failure::Refused, text))
}

/// The pause of a client that asks again and again.
pub(crate) const BUSY: Duration = Duration::from_millis(50);
/// The pause of a client that is idle most of the time, as a browser is.
pub(crate) const SELDOM: Duration = Duration::from_secs(2);
