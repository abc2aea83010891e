use greenroom_actor::{ActorSystemStatus, DispatcherStatus, TypeStatus};

use super::format::{count, len};
use super::{Block, Column, Fact, Facts, Section, Table, Value};
use crate::Status;

pub(super) fn section(status: &Status) -> Section {
    let blocks = status.actors.iter().flat_map(|system| {
        let types = system.types.iter().map(type_row).collect();
        let types = Table::new(format!("{}: actors by type", system.name), TYPES, types);
        let dispatchers = system.dispatchers.iter().map(dispatcher_row).collect();
        let caption = format!("{}: dispatchers", system.name);
        let dispatchers = Table::new(caption, DISPATCHERS, dispatchers);
        let tables = types.into_blocks().into_iter();
        let tables = tables.chain(dispatchers.into_blocks());
        std::iter::once(dead_letters(system)).chain(tables)
    });
    Section {
        id: "actors",
        title: "Actors",
        page: "actors.md",
        about: "Actors by type, the dispatchers that run them, and messages that reached nobody.",
        blocks: blocks.collect(),
        empty: "There is no actor system.",
    }
}

fn dead_letters(system: &ActorSystemStatus) -> Block {
    let letters = &system.dead_letters;
    let lost = |number: u64| Value::from(count(number)).warn_if(number > 0);
    Block::Facts(Facts {
        title: format!("{}: dead letters", system.name),
        facts: vec![
            Fact::new("All", ALL, count(letters.total)),
            Fact::new("To actors that ended", ENDED, count(letters.ended)),
            Fact::new("Mailbox full", FULL, lost(letters.mailbox_full)),
            Fact::new("Newest dropped", NEWEST, lost(letters.dropped_newest)),
            Fact::new("Oldest dropped", OLDEST, lost(letters.dropped_oldest)),
            Fact::new("Failed", FAILED, lost(letters.failed)),
            Fact::new("Aborted", ABORTED, lost(letters.aborted)),
        ],
    })
}

fn type_row(each: &TypeStatus) -> Vec<Value> {
    vec![
        each.name.into(),
        count(each.alive).into(),
        count(each.spawned).into(),
        Value::from(count(each.failures)).warn_if(each.failures > 0),
        count(each.restarts).into(),
        count(each.waiting).into(),
        match &each.fullest {
            Some(path) => format!("{}: {path}", each.waiting_max).into(),
            None => "–".into(),
        },
    ]
}

fn dispatcher_row(each: &DispatcherStatus) -> Vec<Value> {
    vec![
        each.name.clone().into(),
        each.kind.into(),
        format!(
            "{} of {}",
            each.workers.saturating_sub(each.resting),
            each.workers
        )
        .into(),
        len(each.runnable).into(),
        count(each.turns).into(),
        Value::from(count(each.stalls)).warn_if(each.stalls > 0),
    ]
}

const TYPES: &[Column] = &[
    Column::text("Type", "The type of the actors."),
    Column::number("Alive", "Actors that live."),
    Column::number("Spawned", "Actors that were spawned since the start."),
    Column::number(
        "Failures",
        "Handlers that panicked or returned an error that counts as one.",
    ),
    Column::number("Restarts", "Times that a supervisor restarted one."),
    Column::number(
        "Waiting",
        "Messages in their mailboxes, of those that were looked at.",
    ),
    Column::text(
        "Fullest mailbox",
        "The number of messages in it, and the path of its actor.",
    ),
];

const DISPATCHERS: &[Column] = &[
    Column::text("Dispatcher", "Its name."),
    Column::text(
        "Kind",
        "Where its workers run: tokio, pool, pinned, loop or stage.",
    ),
    Column::number("Busy", "Workers that have something to do, of all."),
    Column::number("Runnable", "Actors that wait for their turn."),
    Column::number("Turns", "Turns that actors have had since the start."),
    Column::number(
        "Stalls",
        "Times that an actor held a worker for more than about 10 ms.",
    ),
];

const ALL: &str = "Messages that no actor handled, since the start; the senders of some were told.";
const ENDED: &str = "Messages to actors that had ended: harmless, if they were to end.";
const FULL: &str = "Messages that a full mailbox did not take.";
const NEWEST: &str = "Messages that a full mailbox dropped as they came, as it was set to.";
const OLDEST: &str = "Messages that a full mailbox dropped for newer ones, as it was set to.";
const FAILED: &str = "Messages whose handler failed.";
const ABORTED: &str = "Messages whose handler was aborted.";
