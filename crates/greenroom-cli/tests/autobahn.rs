//! Autobahn's fuzzing client against `/ws/echo`: every case of the suite, none failed.

mod outside;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use outside::server::Server;
use outside::tools;
use serde::Deserialize;

/// The whole suite took 15 s when this was written.
const DEADLINE: Duration = Duration::from_mins(4);

/// The number of cases in version 0.8.2.
const CASES: usize = 517;

const AGENT: &str = "greenroom";

/// The report's index: for each agent, for each case.
type Index = BTreeMap<String, BTreeMap<String, Verdict>>;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Verdict {
    behavior: String,
    behavior_close: String,
}

#[test]
fn rfc_6455_autobahn_fuzzing_client_fails_no_case() {
    if let Some(reason) = skip_reason() {
        say(&format!("SKIPPED: Autobahn's fuzzing client: {reason}"));
        return;
    }
    let mut server = Server::start();
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    fuzz(&server, directory.path());
    let verdicts = verdicts(directory.path());

    say(&format!("Autobahn: {}", tally(&verdicts)));
    assert_eq!(verdicts.len(), CASES, "cases run");
    let failed: Vec<_> = verdicts.iter().filter(|(_, v)| v.is_failure()).collect();
    assert!(failed.is_empty(), "failed: {failed:#?}");
    server.assert_sound();
}

/// The suite needs Python 2.7; without one, the installer leaves the reason behind.
fn skip_reason() -> Option<String> {
    fs::read_to_string(tools::path("stamps/autobahn.skipped")).ok()
}

fn fuzz(server: &Server, directory: &Path) {
    let python = tools::installed("autobahn/bin/python");
    let specification = serde_json::json!({
        "outdir": directory.join("report"),
        "servers": [{ "agent": AGENT, "url": format!("ws://{}/ws/echo", server.address()) }],
        "cases": ["*"],
        "exclude-cases": [],
        "exclude-agent-cases": {},
    });
    let path = directory.join("specification.json");
    fs::write(&path, specification.to_string()).expect("the specification can be written");
    let mut command = tools::bounded(python, DEADLINE);
    command
        .args(["-m", "autobahntestsuite.wstest"])
        .args(["--mode", "fuzzingclient", "--spec"])
        .arg(path)
        .current_dir(directory);
    tools::run(&mut command).expect_success("Autobahn's fuzzing client");
}

fn verdicts(directory: &Path) -> BTreeMap<String, Verdict> {
    let text = fs::read_to_string(directory.join("report/index.json"))
        .expect("the fuzzing client writes an index");
    let mut index: Index = serde_json::from_str(&text).expect("the index has the known form");
    index.remove(AGENT).expect("the index names the agent")
}

impl Verdict {
    /// `UNCLEAN` is no failure: the peer closed TCP itself where RFC 6455 only recommends that it
    /// waits for the server to do so.
    fn is_failure(&self) -> bool {
        let behavior_is_right = matches!(
            self.behavior.as_str(),
            "OK" | "NON-STRICT" | "INFORMATIONAL" | "UNIMPLEMENTED"
        );
        let close_is_right = matches!(
            self.behavior_close.as_str(),
            "OK" | "INFORMATIONAL" | "UNCLEAN"
        );
        !(behavior_is_right && close_is_right)
    }
}

fn tally(verdicts: &BTreeMap<String, Verdict>) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for verdict in verdicts.values() {
        *counts.entry(verdict.behavior.clone()).or_default() += 1;
        let close = format!("close {}", verdict.behavior_close);
        *counts.entry(close).or_default() += 1;
    }
    let counts: Vec<String> = counts
        .iter()
        .map(|(behavior, count)| format!("{count} {behavior}"))
        .collect();
    counts.join(", ")
}

/// Writes past the test harness, which hides the output of a passing test.
fn say(line: &str) {
    writeln!(io::stderr(), "{line}").expect("standard error can be written");
}
