use std::time::Duration;

use greenroom_quantiles::micros;
use metrics::{Counter, Histogram, counter, histogram};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::error::Reason;
use super::submission::RouteName;

/// The metrics of a stage.
#[derive(Debug)]
pub(super) struct Meters {
    stage: String,
    completed: Counter,
    panicked: Counter,
    cancelled: Counter,
    shed_wait: Counter,
    shed_queue_full: Counter,
    shed_late: Counter,
    wait: Histogram,
    service: Histogram,
    routes: Mutex<FxHashMap<u64, RouteMeters>>,
}

/// The counters of a route. Clients are told apart in the status only: as labels they would be
/// without end.
#[derive(Clone, Debug)]
struct RouteMeters {
    used: Counter,
    rejected: Counter,
}

impl Meters {
    pub(super) fn of(stage: &str) -> Self {
        let ended = |outcome: &'static str| {
            let labels = [("stage", stage.to_owned()), ("outcome", outcome.to_owned())];
            counter!("greenroom_stage_runs_total", &labels)
        };
        let shed = |reason: &'static str| {
            let labels = [("stage", stage.to_owned()), ("reason", reason.to_owned())];
            counter!("greenroom_stage_rejected_total", &labels)
        };
        Self {
            completed: ended("completed"),
            panicked: ended("panicked"),
            cancelled: ended("cancelled"),
            shed_wait: shed("wait"),
            shed_queue_full: shed("queue_full"),
            shed_late: shed("late"),
            wait: histogram!("greenroom_stage_wait_seconds", "stage" => stage.to_owned()),
            service: histogram!("greenroom_stage_service_seconds", "stage" => stage.to_owned()),
            routes: Mutex::default(),
            stage: stage.to_owned(),
        }
    }

    pub(super) fn waited(&self, time: Duration) {
        self.wait.record(time);
    }

    pub(super) fn ended(&self, service: Duration, has_panicked: bool) {
        self.service.record(service);
        let outcome = if has_panicked {
            &self.panicked
        } else {
            &self.completed
        };
        outcome.increment(1);
    }

    pub(super) fn cancelled(&self) {
        self.cancelled.increment(1);
    }

    pub(super) fn used(&self, route: &RouteName, used: Duration) {
        self.of_route(route).used.increment(micros(used));
    }

    pub(super) fn shed(&self, route: &RouteName, reason: Reason) {
        let reason = match reason {
            Reason::Wait => &self.shed_wait,
            Reason::QueueFull => &self.shed_queue_full,
            Reason::Late => &self.shed_late,
        };
        reason.increment(1);
        self.of_route(route).rejected.increment(1);
    }

    /// Returns the counters of a route, made when it is first seen. Routes are named by the
    /// application, so their number is bounded.
    fn of_route(&self, route: &RouteName) -> RouteMeters {
        let mut routes = self.routes.lock();
        let known = routes.get(&route.key).cloned();
        known.unwrap_or_else(|| {
            let labels = [
                ("stage", self.stage.clone()),
                ("http_request_method", route.method.to_owned()),
                ("http_route", route.path.to_owned()),
            ];
            let meters = RouteMeters {
                used: counter!("greenroom_stage_route_used_microseconds_total", &labels),
                rejected: counter!("greenroom_stage_route_rejected_total", &labels),
            };
            routes.insert(route.key, meters.clone());
            meters
        })
    }
}
