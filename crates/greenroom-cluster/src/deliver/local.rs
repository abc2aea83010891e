//! Durable messages within one process: they last as long as it does.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use tokio::time::sleep;

use super::consumer::{HANDLED_WITHIN, PAUSE_MAX, PAUSE_MIN};
use crate::core::Core;
use crate::remote::RemoteError;
use crate::wire::Request;

/// The durable messages that wait or are under way in a process alone.
const WAITING_MAX: u64 = 65_536;

pub(super) fn deliver(core: &Arc<Core>, request: Request) -> Result<(), RemoteError> {
    let before = core.local_durable.fetch_add(1, Ordering::Relaxed);
    if before >= WAITING_MAX {
        core.local_durable.fetch_sub(1, Ordering::Relaxed);
        return Err(RemoteError::Refused {
            receiver: request.target.to_string(),
            message: request.message.to_string(),
            reason: format!("{WAITING_MAX} durable messages wait already"),
            retry_after: None,
        });
    }
    let core = Arc::clone(core);
    tokio::spawn(async move {
        handle(&core, request).await;
        core.local_durable.fetch_sub(1, Ordering::Relaxed);
    });
    Ok(())
}

async fn handle(core: &Arc<Core>, mut request: Request) {
    request.timeout = Some(HANDLED_WITHIN);
    let pauses = ExponentialBuilder::default()
        .with_min_delay(PAUSE_MIN)
        .with_max_delay(PAUSE_MAX)
        .without_max_times();
    let mut pauses = pauses.build();
    let mut failures = 0;
    loop {
        let response = core.handle_durable(request.clone()).await;
        match response.outcome {
            Ok(_) => return core.meters.delivered(),
            Err(rejection) if !rejection.is_passing() => {
                failures += 1;
                if failures >= core.limits.deliveries_max {
                    return core.meters.dead_letter(rejection.label());
                }
            }
            Err(_) => {}
        }
        sleep(pauses.next().unwrap_or(Duration::from_secs(60))).await;
    }
}
