use std::cmp::Reverse;

use greenroom_stage::placement::{Move, MoveReason, MoveStatus};
use greenroom_stage::{Placed, RouteStatus};

use super::format::{count, micros, seconds};
use super::{Column, Section, Table, Value};
use crate::Status;

pub(super) fn section(status: &Status) -> Section {
    let mut routes: Vec<&RouteStatus> = status.routes.iter().collect();
    routes.sort_by_key(|route| Reverse((route.sheds > 0, route.poll_time.count)));
    let rows = routes.into_iter().map(row).collect();
    Section {
        id: "routes",
        title: "Routes",
        page: "placement.md",
        about: "Each route runs on the loop once it has proven short, and on a stage until then. \
                The busiest come first.",
        blocks: Table::new("All routes", COLUMNS, rows).into_blocks(),
        empty: "No route that is placed has had a request yet.",
    }
}

fn row(route: &RouteStatus) -> Vec<Value> {
    let path = match &*route.path {
        "" => "(no route)",
        path => path,
    };
    let is_inline = matches!(route.placed, Placed::Inline | Placed::AutoInline);
    vec![
        format!("{} {path}", route.method).into(),
        if is_inline { "loop" } else { "stage" }.into(),
        why(route).into(),
        moves(&route.latest_moves).into(),
        count(route.poll_time.count).into(),
        micros(route.poll_time.p50_micros).into(),
        micros(route.poll_time.p99_micros).into(),
        Value::from(count(route.sheds)).warn_if(route.sheds > 0),
        Value::from(count(route.stalls)).warn_if(route.stalls > 0),
    ]
}

fn why(route: &RouteStatus) -> String {
    match route.placed {
        Placed::Inline | Placed::Staged => "placed by name".to_owned(),
        Placed::AutoInline => "proven short".to_owned(),
        Placed::AutoStaged if route.is_pinned => "blocks in place".to_owned(),
        Placed::AutoStaged if route.streak == 0 => "its last run was long".to_owned(),
        Placed::AutoStaged => format!("{} of {} short runs", route.streak, route.streak_needed),
    }
}

fn moves(moves: &[MoveStatus]) -> String {
    let moves = moves.iter().map(|made| {
        let to = match made.to {
            Move::Inline => "to the loop",
            Move::Staged => "to the stage",
        };
        let reason = match made.reason {
            MoveReason::BlocksInPlace => "blocks",
            MoveReason::Long => "a long run",
            MoveReason::ProvenShort => "short",
            MoveReason::Stalled => "held up a loop",
        };
        format!("{} ago {to}: {reason}", seconds(made.seconds_ago))
    });
    let moves: Vec<String> = moves.take(2).collect();
    if moves.is_empty() {
        "–".to_owned()
    } else {
        moves.join("; ")
    }
}

const COLUMNS: &[Column] = &[
    Column::text(
        "Route",
        "Its method and its pattern, as the router matched it.",
    ),
    Column::text("Runs on", "The loop itself, or a stage."),
    Column::text(
        "Because",
        "Proven short: enough runs in a row were. N of M short runs: it moves to the loop after M. \
         Blocks in place: it can run on a stage only.",
    ),
    Column::long(
        "Last moves",
        "Its two latest moves between loop and stage, and the reason of each.",
    ),
    Column::number("Runs", "Requests that it has handled since the start."),
    Column::number(
        "p50",
        "Half of its runs kept a thread for at most this long, waiting not included.",
    ),
    Column::number(
        "p99",
        "99 of 100 of its runs kept a thread for at most this long.",
    ),
    Column::number("Rejected", "Its requests that got a 503 since the start."),
    Column::number(
        "Stalls",
        "Times that the watchdog saw it hold up a loop for over 10 ms.",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_tell_when_where_and_why() {
        assert_eq!(moves(&[]), "–");
        let made = MoveStatus {
            to: Move::Staged,
            reason: MoveReason::Stalled,
            seconds_ago: 75,
        };
        assert_eq!(
            moves(&[made]),
            "1 min 15 s ago to the stage: held up a loop"
        );
    }
}
