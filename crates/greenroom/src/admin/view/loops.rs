use greenroom_server::{LoopStatus, Pressure};

use super::format::{count, len, micros};
use super::{Block, Fact, Facts, Section, Value};
use crate::Status;

pub(super) fn section(status: &Status) -> Section {
    Section {
        id: "loops",
        title: "Loops",
        page: "limits.md",
        about: "A loop is a thread that reads and writes for its connections, and runs the \
                handlers that have proven short. If it lags, all of them wait.",
        blocks: status.loops.iter().map(facts).collect(),
        empty: "No loop runs: the server does not serve yet, or has ended.",
    }
}

fn facts(each: &LoopStatus) -> Block {
    let (pressure, is_over) = match each.pressure {
        Pressure::None => ("none", false),
        Pressure::Raised => ("raised", false),
        Pressure::Over => ("over", true),
    };
    let pressure = Value::from(pressure).warn_if(each.pressure != Pressure::None);
    let lag = Value::from(micros(each.lag_micros));
    let is_late = each.lag_micros > each.loop_lag_max_micros;
    let facts = vec![
        Fact::new(
            "Lag",
            LAG,
            lag.of_limit(each.lag_micros, each.loop_lag_max_micros)
                .warn_if(is_late),
        ),
        Fact::new("Lag p50", LAG_P50, micros(each.lag.p50_micros)),
        Fact::new("Lag p99", LAG_P99, micros(each.lag.p99_micros)),
        Fact::new("Longest lag", LAG_LONGEST, micros(each.lag.max_micros)),
        Fact::new("Pressure", PRESSURE, pressure.bad_if(is_over)),
        Fact::new("Connections", CONNECTIONS, len(each.connections)),
        Fact::new("Requests", REQUESTS, count(each.requests)),
        Fact::new(
            "Rejected",
            REJECTED,
            Value::from(count(each.rejected)).warn_if(each.rejected > 0),
        ),
        Fact::new(
            "Stalls",
            STALLS,
            Value::from(count(each.stalls)).warn_if(each.stalls > 0),
        ),
    ];
    Block::Facts(Facts {
        title: each.name.clone(),
        facts,
    })
}

const LAG: &str = "How long ready work waited for this loop, by the last probe. The bar shows it \
    beside loop_lag_max. A busy loop is probed all the time, an idle one seldom.";
const LAG_P50: &str = "Half of all probes since the start found at most this lag.";
const LAG_P99: &str = "99 of 100 probes since the start found at most this lag.";
const LAG_LONGEST: &str = "The longest lag that a probe found since the start.";
const PRESSURE: &str = "none: work is served soon enough. raised: it has waited for more than half \
    of loop_lag_max for some time, so what is not important is refused. over: for more than \
    loop_lag_max, so new connections are accepted slowly or get a 503.";
const CONNECTIONS: &str = "Connections that it serves now, idle ones included.";
const REQUESTS: &str = "Requests that it gave to the application since the start.";
const REJECTED: &str = "Connections that it rejected with 503 since the start, because they had \
    waited too long to be accepted.";
const STALLS: &str = "Times that something besides a route held it up for over 10 ms, such as a \
    task that a handler spawned. The log names what it was.";
