use std::cmp::Reverse;

use super::format::count;
use super::stages::{percentage, route};
use super::{Column, Section, Table, Value};
use crate::Status;

/// Somebody who is refused.
struct Refused {
    who: String,
    place: String,
    rejected: u64,
    share: Option<f64>,
    advice: &'static str,
}

pub(super) fn section(status: &Status) -> Section {
    let mut refused = of_stages(status);
    refused.extend(of_loops(status));
    #[cfg(feature = "psgi")]
    refused.extend(of_perl(status));
    #[cfg(feature = "proxy")]
    refused.extend(of_proxies(status));
    refused.sort_by_key(|row| Reverse(row.rejected));
    let rows = refused.into_iter().map(|row| {
        vec![
            row.who.into(),
            row.place.into(),
            Value::from(count(row.rejected)).warn_if(true),
            row.share.map_or_else(|| "–".into(), percentage),
            row.advice.into(),
        ]
    });
    Section {
        id: "admission",
        title: "Admission",
        page: "operate.md#who-is-refused",
        about: "Who is refused, so that all others are served in time, and what can be done. \
                Counted since the start, or for as long as a client is remembered.",
        blocks: Table::new("Who is refused", COLUMNS, rows.collect()).into_blocks(),
        empty: "Nobody has been refused.",
    }
}

fn of_stages(status: &Status) -> Vec<Refused> {
    let shares = status.stages.iter().flat_map(|stage| {
        let shares = stage.shares.iter().filter(|share| share.rejected > 0);
        shares.map(|share| Refused {
            who: format!("{} by {}", route(share), share.client),
            place: stage.name.clone(),
            rejected: share.rejected,
            share: Some(share.percent),
            advice: match share.percent {
                50.0.. => USES_MOST,
                _ => SHARES_A_FULL_STAGE,
            },
        })
    });
    shares.collect()
}

fn of_loops(status: &Status) -> impl Iterator<Item = Refused> {
    let loops = status.loops.iter().filter(|each| each.rejected > 0);
    loops.map(|each| Refused {
        who: "new connections".to_owned(),
        place: each.name.clone(),
        rejected: each.rejected,
        share: None,
        advice: LOOP_IS_LATE,
    })
}

#[cfg(feature = "psgi")]
fn of_perl(status: &Status) -> impl Iterator<Item = Refused> {
    status.psgi.iter().flat_map(|gateway| {
        let shares = gateway.queue.shares.iter();
        let refused = shares.filter(|share| share.rejected > 0);
        refused.map(|share| Refused {
            who: share.client.to_string(),
            place: format!("Perl {}", gateway.application),
            rejected: share.rejected,
            share: None,
            advice: WORKERS_ARE_BUSY,
        })
    })
}

#[cfg(feature = "proxy")]
fn of_proxies(status: &Status) -> impl Iterator<Item = Refused> {
    let proxies = status.proxies.iter().filter(|proxy| proxy.refused > 0);
    proxies.map(|proxy| Refused {
        who: "requests".to_owned(),
        place: match proxy.upstreams.first() {
            Some(first) => format!("proxy to {}", first.address),
            None => "proxy".to_owned(),
        },
        rejected: proxy.refused,
        share: None,
        advice: UPSTREAMS_ARE_FULL,
    })
}

const COLUMNS: &[Column] = &[
    Column::text(
        "Who",
        "The route and the client, or what was refused before either was known.",
    ),
    Column::text("By", "The queue or loop that refused."),
    Column::number("Refused", "Requests or connections that got a 503."),
    Column::number("Share", "Its part of the recent use of that stage."),
    Column::long(
        "What to do",
        "What helps, if this is not what should happen.",
    ),
];

const USES_MOST: &str = "It uses most of the stage, so it is refused first. Make the route cheaper, \
    limit the client, or give the route a stage of its own.";
const SHARES_A_FULL_STAGE: &str = "The stage is full. Clients behind one address or proxy share one \
    turn: name them by a client key or --trusted-proxy. Else more threads, or a longer \
    --queue-wait-max.";
const LOOP_IS_LATE: &str = "The loop is late: look for stalls in the log and above, and for a \
    handler that is placed inline by name; else the machine is full.";
#[cfg(feature = "psgi")]
const WORKERS_ARE_BUSY: &str = "All workers are busy: more --workers, a faster route, or a limit for \
    this client.";
#[cfg(feature = "proxy")]
const UPSTREAMS_ARE_FULL: &str = "Each upstream has as many requests as it may: find out why they \
    are slow, add one, or raise the limit.";
