use greenroom_stage::{Share, StageStatus};

use super::format::{bytes, count, len, micros};
use super::{Block, Column, Fact, Facts, Section, Table, Value};
use crate::Status;

pub(super) fn section(status: &Status) -> Section {
    let blocks = status.stages.iter().flat_map(|stage| {
        let shares = shares(stage).into_blocks();
        std::iter::once(facts(stage)).chain(shares)
    });
    Section {
        id: "stages",
        title: "Stages",
        page: "placement.md",
        about: "A stage is a bounded queue with threads of its own, for handlers that compute or \
                block. Whose route and client have used least of late comes first.",
        blocks: blocks.collect(),
        empty: "No stage has had work yet.",
    }
}

fn facts(stage: &StageStatus) -> Block {
    let (wait, wait_max) = (stage.predicted_wait_micros, stage.queue_wait_max_micros);
    let threads = &stage.threads;
    let threads = format!("{} of {}", threads.working, threads.total);
    let rejected = stage.sheds.total();
    let facts = vec![
        Fact::new(
            "Predicted wait",
            WAIT,
            limited(micros(wait), wait, wait_max),
        ),
        Fact::new("Wait allowed", WAIT_MAX, micros(wait_max)),
        Fact::new(
            "Waiting",
            WAITING,
            limited(
                len(stage.queue_len),
                stage.queue_len as u64,
                stage.queue_max as u64,
            ),
        ),
        Fact::new(
            "Memory",
            MEMORY,
            limited(
                bytes(stage.queue_bytes as u64),
                stage.queue_bytes as u64,
                stage.queue_bytes_max as u64,
            ),
        ),
        Fact::new("Threads at work", THREADS, threads),
        Fact::new("Blocked", BLOCKED, len(stage.threads.blocked)),
        Fact::new("Waited p50", WAITED_P50, micros(stage.wait.p50_micros)),
        Fact::new("Waited p99", WAITED_P99, micros(stage.wait.p99_micros)),
        Fact::new("Ran p50", RAN_P50, micros(stage.service.p50_micros)),
        Fact::new("Ran p99", RAN_P99, micros(stage.service.p99_micros)),
        Fact::new("Completed", COMPLETED, count(stage.completed)),
        Fact::new(
            "Rejected",
            REJECTED,
            Value::from(count(rejected)).warn_if(rejected > 0),
        ),
        Fact::new(
            "Panicked",
            PANICKED,
            Value::from(count(stage.panicked)).warn_if(stage.panicked > 0),
        ),
        Fact::new("Given up", GIVEN_UP, count(stage.cancelled)),
    ];
    Block::Facts(Facts {
        title: stage.name.clone(),
        facts,
    })
}

/// A value that stands out from nine tenths of its limit on, where new work is refused.
fn limited(text: String, used: u64, limit: u64) -> Value {
    let tenths = u128::from(used) * 10;
    let value = Value::from(text).of_limit(used, limit);
    value
        .warn_if(tenths >= u128::from(limit) * 5)
        .bad_if(tenths >= u128::from(limit) * 9)
}

fn shares(stage: &StageStatus) -> Table {
    let rows = stage.shares.iter().map(|share| {
        vec![
            route(share).into(),
            share.client.to_string().into(),
            percentage(share.percent),
            micros(share.used_micros).into(),
            count(share.runs).into(),
            Value::from(count(share.rejected)).warn_if(share.rejected > 0),
        ]
    });
    let caption = format!("{}: use by route and client", stage.name);
    Table::new(caption, SHARES, rows.collect())
}

pub(super) fn route(share: &Share) -> String {
    match (share.method, share.path) {
        ("", _) => "(work of the application)".to_owned(),
        (method, "") => format!("{method} (no route)"),
        (method, path) => format!("{method} {path}"),
    }
}

pub(super) fn percentage(percent: f64) -> Value {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is clamped"
    )]
    let fill = percent.clamp(0.0, 100.0) as u8;
    Value {
        fill: Some(fill),
        ..Value::from(format!("{percent:.1} %"))
    }
}

const SHARES: &[Column] = &[
    Column::text("Route", "The route that submitted the work."),
    Column::text(
        "Client",
        "The client: its address, its network for IPv6, or the name that a client key gave it.",
    ),
    Column::number(
        "Share",
        "Its part of the recent use of the stage; use fades by half each 10 s. Whoever has the \
         smallest share comes first.",
    ),
    Column::number(
        "Used",
        "The time of threads or processors that it used since it was first seen.",
    ),
    Column::number("Runs", "Its runs that ended, or gave way to others."),
    Column::number(
        "Rejected",
        "Its requests that got a 503, because they would have waited too long, or did.",
    ),
];

const WAIT: &str = "How long a new request would wait that comes last; a client that has used less \
    waits for less. The bar shows it beside the wait allowed; from nine tenths on new work gets a 503.";
const WAIT_MAX: &str = "queue_wait_max: the longest wait that the stage allows.";
const WAITING: &str = "Runs that wait for a thread. The bar shows them beside queue_max.";
const MEMORY: &str = "What the waiting runs take, bodies not counted. The bar shows it beside \
    queue_bytes_max.";
const THREADS: &str = "Threads that have something to do, of all of the stage.";
const BLOCKED: &str = "Threads at work that were blocked in the system when last looked at; for \
    these, others are started.";
const WAITED_P50: &str = "Half of the runs since the start waited at most this long for a thread.";
const WAITED_P99: &str = "99 of 100 runs since the start waited at most this long for a thread.";
const RAN_P50: &str = "Half of the runs since the start held a thread for at most this long.";
const RAN_P99: &str = "99 of 100 runs since the start held a thread for at most this long.";
const COMPLETED: &str = "Runs that ended with a result, since the start.";
const REJECTED: &str = "Requests that got a 503 from this stage since the start: the wait would have \
    been too long, the queue was full, or their turn came too late.";
const PANICKED: &str = "Runs that ended with a panic, since the start. The log tells where.";
const GIVEN_UP: &str = "Runs that were given up because their client had left, since the start.";
