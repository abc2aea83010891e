use greenroom_psgi::{GatewayStatus, WorkerState, WorkerStatus};

use super::format::{bytes, count, len, micros, seconds};
use super::{Block, Column, Fact, Facts, Section, Table, Value};
use crate::Status;

/// The time without progress from which a worker stands out.
const STUCK_MICROS: u64 = 1_000_000;

pub(super) fn section(status: &Status) -> Section {
    let blocks = status.psgi.iter().flat_map(|gateway| {
        let rows = gateway.workers.iter().map(worker).collect();
        let workers = Table::new(format!("{}: workers", title(gateway)), WORKERS, rows);
        std::iter::once(facts(gateway)).chain(workers.into_blocks())
    });
    Section {
        id: "perl",
        title: "Perl workers",
        page: "psgi.md",
        about: "Perl applications: the queue before their workers, and each worker process.",
        blocks: blocks.collect(),
        empty: "No Perl application is served.",
    }
}

/// Returns the number of workers that serve.
pub(super) fn ready(gateway: &GatewayStatus) -> usize {
    let workers = gateway.workers.iter();
    let ready = workers.filter(|worker| worker.state == WorkerState::Ready);
    ready.count()
}

fn facts(gateway: &GatewayStatus) -> Block {
    let queue = &gateway.queue;
    let ready = ready(gateway);
    let workers = Value::from(format!("{ready} of {}", gateway.workers_wanted));
    let seen = |number: u64| Value::from(count(number)).warn_if(number > 0);
    let (wait, wait_max) = (queue.predicted_wait_micros, queue.queue_wait_max_micros);
    let facts = vec![
        Fact::new(
            "Workers ready",
            READY,
            workers.warn_if(ready < gateway.workers_wanted),
        ),
        Fact::new(
            "Predicted wait",
            WAIT,
            Value::from(micros(wait))
                .of_limit(wait, wait_max)
                .bad_if(queue.is_standing),
        ),
        Fact::new("Wait allowed", WAIT_MAX, micros(wait_max)),
        Fact::new(
            "Waiting",
            WAITING,
            Value::from(len(queue.queue_len))
                .of_limit(queue.queue_len as u64, queue.queue_max as u64),
        ),
        Fact::new("Mean run", MEAN, micros(queue.busy_mean_micros)),
        Fact::new("Rejected", REJECTED, seen(queue.sheds.total())),
        Fact::new("Generation", GENERATION, count(gateway.generation.into())),
        Fact::new("Restarts", RESTARTS, seen(gateway.restarts)),
        Fact::new("Hung", HUNG, seen(gateway.hung)),
        Fact::new("Retired", RETIRED, count(gateway.retired)),
        Fact::new("Failed reloads", RELOADS, seen(gateway.reloads_failed)),
    ];
    let title = title(gateway);
    Block::Facts(Facts { title, facts })
}

/// Returns the application, and where it is: several may be of one file.
fn title(gateway: &GatewayStatus) -> String {
    match &*gateway.label {
        "" => gateway.application.clone(),
        label => format!("{} at {label}", gateway.application),
    }
}

fn worker(worker: &WorkerStatus) -> Vec<Value> {
    let state = format!("{:?}", worker.state).to_lowercase();
    let is_stuck = worker.stuck_micros >= STUCK_MICROS;
    vec![
        worker.pid.to_string().into(),
        state.into(),
        worker.mode.clone().into(),
        count(worker.generation.into()).into(),
        count(worker.running.into()).into(),
        count(worker.waiting.into()).into(),
        count(worker.served).into(),
        Value::from(micros(worker.stuck_micros)).warn_if(is_stuck),
        bytes(worker.rss_bytes).into(),
        seconds(worker.age_seconds).into(),
    ]
}

const WORKERS: &[Column] = &[
    Column::text("Process", "Its number, as ps shows it."),
    Column::text(
        "State",
        "starting: it loads the application. ready: it serves. retiring: until its successor is \
         ready. draining: it finishes what it began.",
    ),
    Column::text(
        "Driven by",
        "blocking, or the event loop that the application uses.",
    ),
    Column::number(
        "Generation",
        "The start that it belongs to; a reload begins the next one.",
    ),
    Column::number("Running", "Requests that it has not released."),
    Column::number("Waiting", "Its requests that wait for an event in it."),
    Column::number("Served", "Requests that it has ended."),
    Column::number(
        "Without progress",
        "How long its requests have made none. Beyond --timeout it is killed.",
    ),
    Column::number("Memory", "Its resident memory, shared pages included."),
    Column::number("Age", "The time since it was forked."),
];

const READY: &str = "Workers that serve, of those that there should be.";
const WAIT: &str = "How long a new request would wait for a worker. The bar shows it beside the wait \
    allowed; beyond it requests get a 503.";
const WAIT_MAX: &str = "--worker-queue-wait-max: the longest wait that is allowed.";
const WAITING: &str = "Requests that wait for a worker. The bar shows them beside \
    --worker-queue-max.";
const MEAN: &str = "The mean time of the latest 32 runs in a worker.";
const REJECTED: &str = "Requests that got a 503 since the start, because they would have waited too \
    long, or did.";
const GENERATION: &str = "1 at first, one more after each reload that took over.";
const RESTARTS: &str = "Processes that were started in place of one that ended unexpectedly.";
const HUNG: &str = "Workers that were killed because they made no progress.";
const RETIRED: &str = "Workers that were replaced because of their requests, their memory or their \
    own wish.";
const RELOADS: &str = "Reloads that failed, so that the old code went on. The log tells why.";
