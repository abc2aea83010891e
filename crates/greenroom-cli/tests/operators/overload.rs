//! The page, health and metrics respond while the server is asked for ten times of what it can do,
//! and say who is refused.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::outside::{tools, wait};
use crate::{Operated, PATIENCE};

/// Some milliseconds of computing, on a stage.
const LONG: &str = "/fib/30000";

/// Flags with which the stage refuses soon.
pub(crate) const SHORT_OF_THREADS: &[&str] = &["--stage-threads", "2", "--queue-wait-max", "20ms"];

/// The requests that are sent, in terms of those that the server can serve.
const TIMES_CAPACITY: f64 = 10.0;

/// Connections at once: each request has one of its own.
const CONNECTIONS: &str = "256";

/// Rounds of looking at everything meanwhile.
const ROUNDS: usize = 20;

/// Requests at a fixed rate, whatever the server does, until it is dropped.
pub(crate) struct Flood {
    generator: Child,
    report: PathBuf,
    _directory: TempDir,
}

/// The end of a flood, by the generator's count.
struct Flooded {
    sent: u64,
    served: u64,
    refused: u64,
}

fn bench(operated: &Operated, flags: &[&str], report: &std::path::Path) -> Command {
    let mut bench = Command::new(env!("CARGO_BIN_EXE_greenroom"));
    bench.args(["bench", "--quiet", "--json"]).arg(report);
    bench.args(flags).arg(operated.server.url(LONG));
    bench.env_clear().stdin(Stdio::null()).stdout(Stdio::null());
    bench
}

fn read(report: &std::path::Path) -> Value {
    let text = std::fs::read_to_string(report).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn statuses(report: &Value) -> impl Fn(&str) -> u64 {
    let statuses = report["streams"][0]["statuses"].clone();
    move |status| statuses[status].as_u64().unwrap_or_default()
}

/// Returns the requests that the stage's two threads serve in a second, with one client for each.
fn capacity(operated: &Operated, report: &std::path::Path) -> f64 {
    let mut bench = bench(operated, &["-k", "-c", "2", "-t", "2s"], report);
    assert!(bench.status().unwrap().success());
    let report = read(report);
    let served = statuses(&report)("200");
    assert!(served > 0, "{report}");
    #[expect(clippy::cast_precision_loss, reason = "it is a small number")]
    let served = served as f64;
    served / report["elapsed_seconds"].as_f64().unwrap()
}

impl Flood {
    pub(crate) fn begin(operated: &Operated) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let report = directory.path().join("report.json");
        let rate = (TIMES_CAPACITY * capacity(operated, &report)).to_string();
        let flags = ["--rate", &rate, "-t", "1h", "-c", CONNECTIONS];
        let generator = bench(operated, &flags, &report).spawn().unwrap();
        Self {
            generator,
            report,
            _directory: directory,
        }
    }

    /// Ends it in order.
    fn end(mut self) -> Flooded {
        assert!(self.generator.try_wait().unwrap().is_none(), "it has ended");
        kill_process(Pid::from_child(&self.generator), Signal::TERM).unwrap();
        self.generator.wait().unwrap();
        let report = read(&self.report);
        let of = statuses(&report);
        Flooded {
            sent: report["streams"][0]["requests"]["sent"].as_u64().unwrap(),
            served: of("200"),
            refused: of("503"),
        }
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.generator.kill();
        let _ = self.generator.wait();
    }
}

/// Returns the requests that the routes have rejected until now.
fn rejected(operated: &Operated) -> u64 {
    let status: Value = serde_json::from_str(&operated.ask("/greenroom/status").body).unwrap();
    let routes = status["routes"].as_array().unwrap().iter();
    routes.filter_map(|route| route["sheds"].as_u64()).sum()
}

/// Asks for everything once.
fn look(operated: &Operated) {
    let page = operated.ask("/");
    assert_eq!(page.status, 200);
    let (_, admission) = page.body.split_once("id=\"admission\"").unwrap();
    let (admission, _) = admission.split_once("</section>").unwrap();
    assert!(
        admission.contains("GET /fib/{n} by 127.0.0.1"),
        "{admission}"
    );
    assert!(admission.contains("it is refused first"), "{admission}");
    for path in [
        "/greenroom/status",
        "/greenroom/status.txt",
        "/greenroom/metrics",
        "/greenroom/history",
        "/health",
        "/ready",
    ] {
        assert_eq!(operated.ask(path).status, 200, "{path}");
    }
    let admin = operated.admin().to_string();
    let mut command = tools::bounded(env!("CARGO_BIN_EXE_greenroom"), PATIENCE);
    let command = command.args(["status", &admin, "--timeout", "1m"]);
    let shown = tools::run(command)
        .expect_success("greenroom status")
        .stdout;
    assert!(shown.contains("GET /fib/{n} by 127.0.0.1"), "{shown}");
}

#[test]
fn everything_at_the_admin_address_responds_at_ten_times_the_capacity() {
    let operated = Operated::start(SHORT_OF_THREADS);
    let flood = Flood::begin(&operated);
    let page = || operated.ask("/").body;
    wait::until("a refusal", PATIENCE, page, |page| {
        page.contains("requests were refused in the last minute")
    });
    for _ in 0..ROUNDS {
        let before = rejected(&operated);
        look(&operated);
        // So that each round is one under overload.
        let now = || rejected(&operated);
        wait::until("further refusals", PATIENCE, now, |now| *now > before);
    }
    let Flooded {
        sent,
        served,
        refused,
    } = flood.end();
    let all = format!("of {sent} requests {served} were served, {refused} refused");
    assert!(served > 0 && refused > served, "{all}");
}
