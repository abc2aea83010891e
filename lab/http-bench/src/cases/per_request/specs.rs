//! The four rows about CPU time.

use super::{Goal, Load, Metric, Spec};
use crate::cases::contestant::Contestant;

const PIPELINED: u32 = 16;

const PATH: &str = "/hello";

const HYPER: &str = "hyper-hello";
/// hyper with the option that its documentation offers for pipelining.
const FLUSHING: &str = "hyper-hello, pipeline_flush";

pub(crate) fn keepalive() -> Spec {
    Spec {
        case: "keepalive",
        title: "64 keep-alive connections, plain service (actix-web through its router)",
        contestants: contestants(&["raw-epoll", HYPER, "actix-hello", "greenroom-plain"]),
        peer: HYPER,
        load: Load::KeepAlive,
        goals: vec![
            Goal {
                subject: "greenroom-plain",
                metric: Metric::User,
                versus: HYPER,
                at_most: 0.65,
            },
            Goal {
                subject: "greenroom-plain",
                metric: Metric::Total,
                versus: "raw-epoll",
                at_most: 1.10,
            },
        ],
    }
}

pub(crate) fn router() -> Spec {
    Spec {
        case: "router",
        title: "64 keep-alive connections, the same axum Router",
        contestants: contestants(&["axum-hello", "greenroom-axum"]),
        peer: "axum-hello",
        load: Load::KeepAlive,
        goals: vec![Goal {
            subject: "greenroom-axum",
            metric: Metric::User,
            versus: "axum-hello",
            at_most: 0.85,
        }],
    }
}

pub(crate) fn pipelined() -> Spec {
    let flushing = Contestant::new(HYPER, PATH)
        .arguments(["--pipeline-flush"])
        .named(FLUSHING);
    let mut contestants = contestants(&["raw-epoll", HYPER, "greenroom-plain"]);
    contestants.insert(2, flushing);
    let goal = |versus| Goal {
        subject: "greenroom-plain",
        metric: Metric::Total,
        versus,
        at_most: 0.65,
    };
    Spec {
        case: "pipelined",
        title: "64 keep-alive connections, 16 requests in one write",
        contestants,
        peer: FLUSHING,
        load: Load::Pipelined(PIPELINED),
        goals: vec![goal(FLUSHING), goal(HYPER)],
    }
}

pub(crate) fn perconnection() -> Spec {
    Spec {
        case: "perconnection",
        title: "one request per connection, 64 at a time (ab without -k); CPU time is per \
            connection",
        contestants: contestants(&["raw-epoll", HYPER, "actix-hello", "greenroom-plain"]),
        peer: HYPER,
        load: Load::Connections,
        goals: vec![Goal {
            subject: "greenroom-plain",
            metric: Metric::Total,
            versus: HYPER,
            at_most: 0.65,
        }],
    }
}

fn contestants(programs: &[&'static str]) -> Vec<Contestant> {
    programs
        .iter()
        .map(|program| Contestant::new(program, PATH))
        .collect()
}
