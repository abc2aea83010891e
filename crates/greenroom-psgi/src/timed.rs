use std::time::Instant;

use greenroom_timing::Timing;
use http::Extensions;

use crate::pool::Worker;

/// The record of where a request's time goes, if it has one.
pub(crate) struct Timed(Option<Timing>);

impl Timed {
    pub(crate) fn of(extensions: &Extensions) -> Self {
        let timing = Timing::is_used().then(|| extensions.get::<Timing>().cloned());
        Self(timing.flatten())
    }

    /// Records how long a request waits for its worker.
    pub(crate) async fn admitted<T>(&self, admitted: impl Future<Output = T>) -> T {
        let Some(timing) = &self.0 else {
            return admitted.await;
        };
        let began = Instant::now();
        let result = admitted.await;
        timing.queued_for_worker(began.elapsed());
        result
    }

    /// Records how long a worker takes to respond.
    pub(crate) async fn worked<T>(&self, worker: &Worker, response: impl Future<Output = T>) -> T {
        let Some(timing) = &self.0 else {
            return response.await;
        };
        let began = Instant::now();
        let result = response.await;
        let pid = worker.pid.as_raw_nonzero().get();
        timing.worked(pid.unsigned_abs(), began.elapsed());
        result
    }
}
