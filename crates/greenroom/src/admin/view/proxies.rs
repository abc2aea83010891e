use greenroom_proxy::{UpstreamState, UpstreamStatus};

use super::format::count;
use super::{Column, Section, Table, Value};
use crate::Status;

pub(super) fn section(status: &Status) -> Section {
    let upstreams = status.proxies.iter().flat_map(|proxy| &proxy.upstreams);
    let rows = upstreams.map(row).collect();
    Section {
        id: "upstreams",
        title: "Upstreams",
        page: "reverse-proxy.md",
        about: "The servers that requests are passed on to. One that fails too often rests, and \
                gets no requests meanwhile unless all rest.",
        blocks: Table::new("All upstreams", COLUMNS, rows).into_blocks(),
        empty: "No proxy has had a request yet.",
    }
}

fn row(upstream: &UpstreamStatus) -> Vec<Value> {
    let is_resting = upstream.state == UpstreamState::Resting;
    let state = if is_resting { "resting" } else { "healthy" };
    let failures = upstream.failures.total();
    vec![
        upstream.address.clone().into(),
        Value::from(state).bad_if(is_resting),
        count(upstream.in_flight.into()).into(),
        count(upstream.requests).into(),
        count(upstream.retries).into(),
        Value::from(count(failures)).warn_if(failures > 0),
        most_frequent(upstream).into(),
        count(upstream.rests).into(),
    ]
}

fn most_frequent(upstream: &UpstreamStatus) -> &'static str {
    let failures = &upstream.failures;
    let all = [
        (failures.connect, "not reached"),
        (failures.connect_timeout, "not reached in time"),
        (failures.local, "limits of this machine"),
        (failures.response_head_timeout, "no response in time"),
        (failures.response_head, "broken response"),
        (failures.response_body, "broken body"),
        (failures.status, "its own status"),
    ];
    let most = all.into_iter().filter(|(number, _)| *number > 0);
    most.max_by_key(|(number, _)| *number)
        .map_or("–", |(_, reason)| reason)
}

const COLUMNS: &[Column] = &[
    Column::text("Upstream", "Its address, as in the settings."),
    Column::text(
        "State",
        "healthy: it gets requests. resting: it has failed too often.",
    ),
    Column::number(
        "Under way",
        "Requests that it has at present, tunnels included.",
    ),
    Column::number(
        "Requests",
        "Times that it was given a request, retries included.",
    ),
    Column::number(
        "Retries",
        "Of those, the ones that another try before had failed.",
    ),
    Column::number("Failures", "Requests that failed at it since the start."),
    Column::text("Mostly", "The most frequent reason of its failures."),
    Column::number("Rests", "Times that it began to rest."),
];
