//! Logs rejected requests, with advice.

use super::shared::Shared;
use crate::pool::Rejections;
use crate::settings::Settings;

/// Warns of requests that were rejected since the last warning, at most every 10 s.
pub(super) fn tell(shared: &Shared) {
    let Some(rejections) = shared.pool.take_rejections() else {
        return;
    };
    let settings = &shared.settings;
    tracing::warn!(
        target: "psgi",
        application = settings.name(),
        count = rejections.sheds.total(),
        predicted_wait = %format_args!("{:.3?}", rejections.predicted),
        "requests were refused with 503: {}",
        advice(&rejections, settings, is_full_of_waiting(shared)),
    );
}

/// Returns `true` if its workers have as many requests under way as they may, most of which wait
/// for events: then more can be taken without more workers.
fn is_full_of_waiting(shared: &Shared) -> bool {
    let most = shared.settings.concurrency.requests_max();
    let loads = shared.pool.loads();
    let is_full = |running: u32, waiting: u32| running + waiting >= most && waiting > running;
    !loads.is_empty() && loads.iter().all(|load| is_full(load.running, load.waiting))
}

fn advice(rejections: &Rejections, settings: &Settings, is_full_of_waiting: bool) -> String {
    let sheds = rejections.sheds;
    if sheds.queue_full > sheds.wait + sheds.late {
        let queue_max = settings.limits.queue_max;
        return format!(
            "the queue is full; raise queue_max (--worker-queue-max), which is {queue_max}, or \
             workers (--workers), which is {}",
            settings.limits.workers,
        );
    }
    let wait_max = settings.limits.queue_wait_max;
    let raised = if is_full_of_waiting {
        let concurrency = settings.concurrency.requests_max();
        format!("concurrency (--worker-concurrency), which is {concurrency},")
    } else {
        format!("workers (--workers), which is {},", settings.limits.workers)
    };
    format!(
        "they would wait for up to {:.1?}; raise {raised} or queue_wait_max \
         (--worker-queue-wait-max), which is {wait_max:?}",
        rejections.predicted,
    )
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::time::Duration;

    use greenroom_stage::Sheds;

    use super::*;
    use crate::builder::Builder;

    #[test]
    fn what_to_raise_depends_on_why_they_were_refused() {
        let builder = Builder::new(PathBuf::from("app.psgi")).workers(4);
        let rejections = |sheds| Rejections {
            sheds,
            predicted: Duration::from_millis(12_345),
        };
        let wait = rejections(Sheds {
            wait: 2,
            late: 1,
            queue_full: 1,
        });
        let full = rejections(Sheds {
            queue_full: 3,
            ..wait.sheds
        });
        let full = rejections(Sheds {
            wait: 0,
            ..full.sheds
        });
        let told = |rejections, is_full| advice(rejections, &builder.settings, is_full);
        assert_eq!(
            told(&wait, false),
            "they would wait for up to 12.3s; raise workers (--workers), which is 4, or \
             queue_wait_max (--worker-queue-wait-max), which is 10s"
        );
        assert!(
            told(&wait, true).contains("raise concurrency (--worker-concurrency), which is 10000,")
        );
        assert!(
            told(&full, false).contains("raise queue_max (--worker-queue-max), which is 16384")
        );
    }
}
