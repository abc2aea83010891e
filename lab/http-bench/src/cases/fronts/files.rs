//! Files of three sizes.

use std::net::{Ipv4Addr, SocketAddr};

use bench_kit::rounds::{Row, find, interleave, samples};
use bench_kit::{Report, Verdict, cell, table};

use super::servers::{GREENROOM, NGINX, Place};
use crate::cases::Context;
use crate::cases::cost::Cost;
use crate::cases::entry::{Entry, entry_name};

const WARM_UP_SECONDS: u32 = 1;
const VERSUS_NGINX_MAX: f64 = 1.0;
/// Nobody listens there: these servers are asked for files only.
const NOWHERE: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 9);
const PEERS: [(&str, &str); 2] = [("nginx", NGINX), ("caddy", "Caddy")];

/// A file, and the clients that fetch it.
#[derive(Clone, Copy)]
struct Size {
    name: &'static str,
    bytes: u64,
    connections: u32,
    /// As many as this, rather than as many as there is time for.
    requests: Option<u64>,
}

const SIZES: [Size; 3] = [
    Size {
        name: "1 kB",
        bytes: 1_000,
        connections: 64,
        requests: None,
    },
    Size {
        name: "100 kB",
        bytes: 100_000,
        connections: 64,
        requests: None,
    },
    Size {
        name: "1 GB",
        bytes: 1_000_000_000,
        connections: 2,
        requests: Some(4),
    },
];

impl Size {
    fn file(self) -> String {
        format!("{}.bin", self.bytes)
    }

    /// Fetches it; returns the number of responses.
    fn fetch(self, url: &str, seconds: u32, context: &Context) -> anyhow::Result<u64> {
        let bench = context.bench()?;
        let bench = match self.requests {
            None => bench.keep_alive(self.connections, seconds),
            Some(requests) => bench
                .connections(requests, self.connections)
                .flags(["-s", "120"]),
        };
        Ok(bench.run_well(url)?.good())
    }
}

pub(crate) fn files(context: &Context) -> anyhow::Result<Report> {
    let place = Place::new(SocketAddr::from(NOWHERE))?;
    for size in SIZES {
        place.add_file(&size.file(), size.bytes)?;
    }
    let (servers, mut notes) = place.servers("/files/", &PEERS, context)?;
    let of_size = |size: Size| {
        let servers = servers.iter();
        servers.map(move |server| Entry::new(server, size, size.name))
    };
    let entries: Vec<Entry<Size>> = SIZES.into_iter().flat_map(of_size).collect();
    let rows = interleave("files", context.rounds, &entries, |entry| {
        measure(entry, context)
    })?;
    notes.push(format!(
        "medians of {} rounds (least–most); CPU time is of all processes of the server, which has \
         one core; the files' pages are in memory; x: times {NGINX} (sendfile) with the same file, \
         within the round; waited: time without the core, of time on it",
        context.rounds
    ));
    Ok(Report {
        case: "files",
        title: "files of 1 kB and 100 kB on 64 keep-alive connections, of 1 GB on 2".to_owned(),
        notes,
        table: render(&rows),
        verdicts: SIZES.iter().map(|size| verdict(*size, &rows)).collect(),
        samples: samples(&rows),
    })
}

fn measure(entry: &Entry<Size>, context: &Context) -> anyhow::Result<Cost> {
    let (server, size) = (entry.server.launch(context)?.start()?, entry.load);
    let url = server.url(&format!("{}{}", entry.server.path, size.file()));
    if size.requests.is_none() {
        size.fetch(&url, WARM_UP_SECONDS, context)?;
    }
    Cost::of(server.pid(), || size.fetch(&url, context.seconds, context))
}

fn render(rows: &[Row<Cost>]) -> String {
    let mut out = table(["server, file", "CPU us/response", "x", "waited %"]);
    for row in rows {
        out.add_row([
            row.name.clone(),
            cell(row.spread(|cost| cost.total_us), 1),
            cell(versus_nginx(row, rows), 2),
            Cost::waited(row, |cost| cost),
        ]);
    }
    out.to_string()
}

fn versus_nginx(row: &Row<Cost>, rows: &[Row<Cost>]) -> Option<bench_kit::Spread> {
    let (_, size) = row.name.rsplit_once(", ")?;
    let peer = find(rows, &entry_name(NGINX, size))?;
    row.ratio(peer, |cost| cost.total_us)
}

fn verdict(size: Size, rows: &[Row<Cost>]) -> Verdict {
    let ours = find(rows, &entry_name(GREENROOM, size.name));
    let ratio = ours.and_then(|row| versus_nginx(row, rows));
    Verdict::at_most(
        format!("{GREENROOM}, {}: CPU / {NGINX}", size.name),
        ratio.map(|spread| spread.median),
        VERSUS_NGINX_MAX,
        " x",
    )
}
