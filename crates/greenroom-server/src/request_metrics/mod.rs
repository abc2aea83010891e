//! Metrics of requests: how many there are, and how long they take, by route and status.
//!
//! Each loop has counts of its own, which only its thread writes: a request costs two readings of
//! the clock, a look into a table, and three stores. Whoever shows the metrics adds the loops up.

mod labels;
mod series;
mod shown;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Weak};
use std::time::Instant;

use http::{Method, StatusCode, Version};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

pub(crate) use labels::Labels;
use series::{Active, Counted};
use shown::Sums;
pub use shown::{ActiveRequests, REQUEST_SECONDS, RequestMetrics, RequestSeries};

/// Combinations of labels that a loop tells apart. The requests of further ones are counted by
/// their status only.
pub(crate) const REQUEST_SERIES_MAX: usize = 2_000;

/// The counts of this process.
static ALL: Mutex<All> = Mutex::new(All {
    loops: Vec::new(),
    ended: Sums::new(),
});

/// The counts of all loops.
struct All {
    loops: Vec<Weak<OfLoop>>,
    /// The sums of those that have ended: what was counted stays.
    ended: Sums,
}

/// The counts of a loop, as other threads may read them.
#[derive(Debug, Default)]
struct OfLoop {
    active: Active,
    /// Locked by the loop only for a combination that is new to it.
    series: Mutex<Vec<(Labels, Arc<Counted>)>>,
}

/// The counts of a loop, on its thread.
#[derive(Debug)]
pub(crate) struct Requests {
    known: RefCell<FxHashMap<Labels, Arc<Counted>>>,
    shared: Arc<OfLoop>,
}

impl Requests {
    pub(crate) fn new() -> Rc<Self> {
        let shared = Arc::<OfLoop>::default();
        ALL.lock().loops.push(Arc::downgrade(&shared));
        Rc::new(Self {
            known: RefCell::default(),
            shared,
        })
    }

    /// Begins to count a request.
    pub(crate) fn begin(
        self: &Rc<Self>,
        method: &Method,
        version: Version,
        is_tls: bool,
    ) -> MeteredRequest {
        let labels = Labels::new(method, version, is_tls);
        self.shared.active.raise(&labels);
        MeteredRequest {
            requests: Rc::clone(self),
            labels,
            began: Instant::now(),
        }
    }

    fn count(&self, labels: Labels, began: Instant) {
        let taken = began.elapsed();
        let mut known = self.known.borrow_mut();
        if let Some(counted) = known.get(&labels) {
            counted.add(taken);
            return;
        }
        let labels = if known.len() < REQUEST_SERIES_MAX {
            labels
        } else {
            labels.by_status()
        };
        let counted = known.entry(labels).or_insert_with(|| {
            let counted = Arc::<Counted>::default();
            let mut series = self.shared.series.lock();
            series.push((labels, Arc::clone(&counted)));
            counted
        });
        counted.add(taken);
    }
}

impl Drop for Requests {
    fn drop(&mut self) {
        let mut all = ALL.lock();
        let own = Arc::as_ptr(&self.shared);
        all.loops.retain(|of_loop| of_loop.as_ptr() != own);
        all.ended.add_loop(&self.shared, REQUEST_SERIES_MAX);
    }
}

/// A request that is under way, and counts as such until it is dropped.
#[derive(Debug)]
pub(crate) struct MeteredRequest {
    requests: Rc<Requests>,
    labels: Labels,
    began: Instant,
}

impl MeteredRequest {
    /// Counts it as over, with its route and the status of its response, if there were such.
    pub(crate) fn end(mut self, route: Option<&'static str>, status: Option<StatusCode>) {
        self.labels.route = route;
        self.labels.status = status.map_or(0, |status| status.as_u16());
        self.requests.count(self.labels, self.began);
    }
}

impl Drop for MeteredRequest {
    fn drop(&mut self) {
        self.requests.shared.active.lower(&self.labels);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_loop(requests: &Requests) -> Vec<Labels> {
        let series = requests.shared.series.lock();
        series.iter().map(|(labels, _)| *labels).collect()
    }

    #[test]
    fn combinations_beyond_the_limit_are_counted_by_their_status() {
        let requests = Requests::new();
        for index in 0..=REQUEST_SERIES_MAX {
            let route: &'static str = Box::leak(format!("/{index}").into());
            let request = requests.begin(&Method::GET, Version::HTTP_11, false);
            request.end(Some(route), Some(StatusCode::OK));
        }
        for _ in 0..2 {
            let request = requests.begin(&Method::PUT, Version::HTTP_11, false);
            request.end(Some("/one/more"), Some(StatusCode::OK));
        }
        let series = of_loop(&requests);
        assert_eq!(series.len(), REQUEST_SERIES_MAX + 1);
        let last = series.last().expect("there are some");
        assert_eq!((last.route, last.status), (Some(labels::OTHER), 200));
    }

    #[test]
    fn a_request_is_active_until_it_is_dropped() {
        let requests = Requests::new();
        let get = || requests.begin(&Method::GET, Version::HTTP_11, false);
        let labels = Labels::new(&Method::GET, Version::HTTP_11, false);
        let active = || requests.shared.active.of(labels.active_index());
        let (one, other) = (get(), get());
        assert_eq!(active(), 2);
        one.end(None, Some(StatusCode::OK));
        drop(other);
        assert_eq!(active(), 0);
        assert_eq!(of_loop(&requests).len(), 1, "one had no end");
    }
}
