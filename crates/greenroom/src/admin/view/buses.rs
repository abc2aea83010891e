use greenroom_bus::{ConnectionState, Status as Bus};

use super::format::{count, len};
use super::{Block, Fact, Facts, Section, Value};
use crate::Status;

pub(super) fn section(status: &Status) -> Section {
    Section {
        id: "topics",
        title: "Topics",
        page: "bus.md",
        about: "The buses that the server was given: topics, subscriptions, and what was lost.",
        blocks: status.buses.iter().map(facts).collect(),
        empty: "The server was given no bus: a program gives it one by `.bus(&bus)`.",
    }
}

fn facts(bus: &Bus) -> Block {
    let lost = |number: u64| Value::from(count(number)).warn_if(number > 0);
    let mut facts = vec![
        Fact::new("Topics", TOPICS, len(bus.topics)),
        Fact::new("Patterns", PATTERNS, len(bus.patterns)),
        Fact::new("Subscriptions", SUBSCRIPTIONS, len(bus.subscriptions)),
        Fact::new("Published", PUBLISHED, count(bus.published)),
        Fact::new("Delivered", DELIVERED, count(bus.delivered)),
        Fact::new("Dropped", DROPPED, lost(bus.dropped)),
        Fact::new("Closed when full", CLOSED, lost(bus.overflow_closed)),
    ];
    if let Some((server, remote)) = bus.remote() {
        let state = match remote.state {
            ConnectionState::Connecting => "connecting",
            ConnectionState::Connected => "connected",
            ConnectionState::Away => "away",
            ConnectionState::Ended => "ended",
        };
        let is_up = remote.state == ConnectionState::Connected;
        facts.extend([
            Fact::new(server.name(), SERVER, Value::from(state).bad_if(!is_up)),
            Fact::new("Connections lost", LOST, count(remote.connections_lost)),
            Fact::new("To be published", QUEUE, len(remote.publish_queue)),
            Fact::new("Not published", NOT_PUBLISHED, lost(remote.publish_failed)),
        ]);
    }
    Block::Facts(Facts {
        title: bus.adaptor.replace('_', " "),
        facts,
    })
}

const TOPICS: &str = "Topics that have subscriptions by name.";
const PATTERNS: &str = "Patterns with wildcards that have subscriptions.";
const SUBSCRIPTIONS: &str = "Subscriptions of this process.";
const PUBLISHED: &str = "Messages that this process published.";
const DELIVERED: &str = "Messages put into queues: one to 1,000 subscriptions counts 1,000.";
const DROPPED: &str = "Messages that subscriptions dropped because they were full; each was told.";
const CLOSED: &str = "Subscriptions that ended because they were full.";
const SERVER: &str = "The connection to it. While it is away, other processes are not reached.";
const LOST: &str = "Connections to the server that were lost since the start.";
const QUEUE: &str = "Messages that wait to be published through the server.";
const NOT_PUBLISHED: &str = "Messages that were taken for publishing, and then refused or lost.";
