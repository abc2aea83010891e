//! The cases: ours and a peer under one load.

use std::time::Duration;

use crate::load::Load;

/// Greenroom and a peer under the same load.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// The arguments of `http-server`.
    pub(crate) ours: &'static [&'static str],
    pub(crate) peer: &'static [&'static str],
    pub(crate) load: Load,
}

/// Firefox's head of a page, after its `Host`: 11 fields.
const BROWSER: &str = "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 \
    Firefox/140.0\r\n\
    Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n\
    Accept-Language: en-US,en;q=0.5\r\n\
    Accept-Encoding: gzip, deflate, br, zstd\r\n\
    Connection: keep-alive\r\n\
    Upgrade-Insecure-Requests: 1\r\n\
    Sec-Fetch-Dest: document\r\n\
    Sec-Fetch-Mode: navigate\r\n\
    Sec-Fetch-Site: none\r\n\
    Sec-Fetch-User: ?1\r\n\
    Priority: u=0, i\r\n";

const KEEP_ALIVE: Load = Load {
    connections: 64,
    in_flight: 1,
    fields: "",
    pause: Duration::ZERO,
    requests: [2_048, 10_240],
};

const PIPELINED: Load = Load {
    in_flight: 16,
    ..KEEP_ALIVE
};

const PIPELINED_PEER: &[&str] = &["hyper", "--pipeline-flush"];

/// A service that stays where it is called, as the peer's.
const ON_LOOPS: &[&str] = &["greenroom", "--on-loops"];

pub(crate) const CASES: &[Case] = &[
    Case {
        name: "keep-alive",
        ours: ON_LOOPS,
        peer: &["hyper"],
        load: KEEP_ALIVE,
    },
    Case {
        name: "one",
        ours: ON_LOOPS,
        peer: &["hyper"],
        load: Load {
            connections: 1,
            pause: Duration::from_micros(300),
            requests: [512, 2_560],
            ..KEEP_ALIVE
        },
    },
    Case {
        name: "browser",
        ours: ON_LOOPS,
        peer: &["hyper"],
        load: Load {
            fields: BROWSER,
            ..KEEP_ALIVE
        },
    },
    Case {
        name: "placed",
        ours: &["greenroom"],
        peer: &["hyper"],
        load: KEEP_ALIVE,
    },
    Case {
        name: "router",
        ours: &["greenroom-axum"],
        peer: &["axum"],
        load: KEEP_ALIVE,
    },
    Case {
        name: "pipelined",
        ours: ON_LOOPS,
        peer: PIPELINED_PEER,
        load: PIPELINED,
    },
    Case {
        name: "pipelined-placed",
        ours: &["greenroom"],
        peer: PIPELINED_PEER,
        load: PIPELINED,
    },
];

/// Returns the names of all cases, for a message.
pub(crate) fn names() -> String {
    let names: Vec<_> = CASES.iter().map(|case| case.name).collect();
    names.join(", ")
}
