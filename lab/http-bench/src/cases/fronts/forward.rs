//! Requests that are passed on to another server.

use bench_kit::process::{LOAD_CORE, Launch};
use bench_kit::rounds::{find, interleave, samples};
use bench_kit::{Report, Verdict, cell, table};

use super::servers::{GREENROOM, NGINX, Place};
use crate::cases::Context;
use crate::cases::cost::Cost;

const CONNECTIONS: u32 = 64;
const WARM_UP_SECONDS: u32 = 1;
const VERSUS_NGINX_MAX: f64 = 1.0;
const PEERS: [(&str, &str); 3] = [("nginx", NGINX), ("haproxy", "HAProxy"), ("caddy", "Caddy")];

pub(crate) fn forward(context: &Context) -> anyhow::Result<Report> {
    // It needs 3 us a request, so that the load's core has time for the load.
    let upstream = Launch::new(context.binaries.path("raw-epoll")?)
        .on_core(LOAD_CORE)
        .start()?;
    let place = Place::new(upstream.address())?;
    let (servers, mut notes) = place.servers("/hello", &PEERS, context)?;
    let rows = interleave("forward", context.rounds, &servers, |server| {
        let running = server.launch(context)?.start()?;
        let url = running.url(server.path);
        let load = |seconds| -> anyhow::Result<u64> {
            let bench = context.bench()?.keep_alive(CONNECTIONS, seconds);
            Ok(bench.run_well(&url)?.good())
        };
        load(WARM_UP_SECONDS)?;
        Cost::of(running.pid(), || load(context.seconds))
    })?;
    let nginx = find(&rows, NGINX);
    let mut out = table(["server", "CPU us/request", "x", "waited %"]);
    for row in &rows {
        let ratio = nginx.and_then(|nginx| row.ratio(nginx, |cost| cost.total_us));
        out.add_row([
            row.name.clone(),
            cell(row.spread(|cost| cost.total_us), 2),
            cell(ratio, 2),
            Cost::waited(row, |cost| cost),
        ]);
    }
    let ours = find(&rows, GREENROOM).zip(nginx);
    let ratio = ours.and_then(|(ours, nginx)| ours.ratio(nginx, |cost| cost.total_us));
    notes.push(format!(
        "medians of {} rounds (least–most); CPU time is of all processes of the server, which has \
         one core; load and upstream (`raw-epoll`) share the other; connections to the upstream are \
         kept, up to 64; x: times {NGINX}, within the round; waited: time without the core, of time \
         on it",
        context.rounds
    ));
    Ok(Report {
        case: "forward",
        title: format!("requests passed on, {CONNECTIONS} keep-alive connections"),
        notes,
        table: out.to_string(),
        verdicts: vec![Verdict::at_most(
            format!("{GREENROOM} CPU / {NGINX}"),
            ratio.map(|spread| spread.median),
            VERSUS_NGINX_MAX,
            " x",
        )],
        samples: samples(&rows),
    })
}
