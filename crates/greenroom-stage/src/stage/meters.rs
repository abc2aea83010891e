use std::time::Duration;

use metrics::{Counter, Histogram, counter, histogram};

use super::error::Reason;

/// A stage's metrics. Made at its first event, by which time the program has installed its recorder.
#[derive(Debug)]
pub(super) struct Meters {
    completed: Counter,
    panicked: Counter,
    cancelled: Counter,
    shed_wait: Counter,
    shed_queue_full: Counter,
    shed_late: Counter,
    wait: Histogram,
    service: Histogram,
}

impl Meters {
    pub(super) fn of(stage: &str) -> Self {
        let ended = |outcome: &'static str| counter!("greenroom_stage_ended_total", "stage" => stage.to_owned(), "outcome" => outcome);
        let shed = |reason: &'static str| counter!("greenroom_stage_shed_total", "stage" => stage.to_owned(), "reason" => reason);
        Self {
            completed: ended("completed"),
            panicked: ended("panicked"),
            cancelled: ended("cancelled"),
            shed_wait: shed("wait"),
            shed_queue_full: shed("queue_full"),
            shed_late: shed("late"),
            wait: histogram!("greenroom_stage_wait_seconds", "stage" => stage.to_owned()),
            service: histogram!("greenroom_stage_service_seconds", "stage" => stage.to_owned()),
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

    pub(super) fn shed(&self, reason: Reason) {
        let reason = match reason {
            Reason::Wait => &self.shed_wait,
            Reason::QueueFull => &self.shed_queue_full,
            Reason::Late => &self.shed_late,
        };
        reason.increment(1);
    }
}
