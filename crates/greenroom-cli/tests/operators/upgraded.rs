//! Upgrades, as operators see them: by real processes that fail and serve.

use serde_json::Value;

use crate::PATIENCE;
use crate::outside::http::{self, Response};
use crate::outside::wait;
use crate::program::address;
use crate::versions::Versions;

/// A server whose first upgrade failed, whose second one served, and whose third one failed.
pub(crate) struct Upgraded {
    versions: Versions,
    pub(crate) admin: String,
}

impl Upgraded {
    pub(crate) fn start() -> Self {
        let mut upgraded = Self::first();
        upgraded.fail();
        upgraded.serve();
        upgraded.fail();
        upgraded
    }

    fn first() -> Self {
        let flags = ["--listen", "127.0.0.1:0", "--status-listen", "127.0.0.1:0"];
        let versions = Versions::start(tempfile::tempdir().unwrap(), &flags);
        let admin = address(&versions.first.wait_for_log("status at"));
        Self { versions, admin }
    }

    pub(crate) fn address(&self) -> &str {
        &self.versions.first.address
    }

    fn ask(&self, path: &str) -> Response {
        http::get(self.admin.parse().unwrap(), path, PATIENCE).expect(path)
    }

    /// Returns what the status says of upgrades.
    fn upgrades(&self) -> Value {
        let status: Value = serde_json::from_str(&self.ask("/greenroom/status").body).unwrap();
        status["upgrades"].clone()
    }

    fn fail(&self) {
        self.versions.replace_by("exit 7");
        self.versions.fails();
    }

    /// Exchanges it, and waits until the version before has ended.
    fn serve(&mut self) {
        let before = self.versions.pid;
        self.versions.restore();
        self.versions.upgrade();
        self.versions.gone(before);
        let now = || self.upgrades();
        wait::until("the drain's end", PATIENCE, now, |told| {
            told["records"][0]["drain_micros"].is_u64()
        });
    }
}

#[test]
fn a_failed_upgrade_is_on_the_page_with_its_reason_and_what_to_do() {
    let upgraded = Upgraded::first();
    assert!(upgraded.ask("/").body.contains("Nothing needs attention."));
    upgraded.fail();
    let page = upgraded.ask("/").body;
    let (_, warnings) = page.split_once("<ul class=\"warnings\">").unwrap();
    let (warnings, _) = warnings.split_once("</ul>").unwrap();
    for part in [
        "ago failed: it ended before it was ready (exit status: 7)",
        "This version serves on",
        "docs/upgrades.md#when-the-next-version-does-not-start",
    ] {
        assert!(warnings.contains(part), "{part}\n{warnings}");
    }
    let text = upgraded.ask("/greenroom/status.txt").body;
    let (_, text) = text.split_once("\nUpgrades\n").unwrap();
    for part in [
        "failed 1!",
        "failed!!",
        "exit status: 7",
        "greenroom upgrade",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn the_upgrades_before_are_known_to_each_version() {
    let upgraded = Upgraded::start();
    let told = upgraded.upgrades();
    let records = told["records"].as_array().unwrap();
    let results: Vec<_> = records.iter().map(|each| &each["result"]).collect();
    assert_eq!(results, ["failed", "serves", "failed"], "{told}");
    let (first, now) = (upgraded.versions.first.pid(), upgraded.versions.pid);
    assert_eq!(records[2]["from"]["pid"], first);
    assert_eq!(records[1]["from"]["pid"], first);
    assert_eq!(records[1]["to"]["pid"], now);
    assert_eq!(records[1]["to"]["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(records[0]["from"]["pid"], now);
    for failed in [&records[0], &records[2]] {
        let reason = failed["reason"].as_str().unwrap();
        assert!(reason.contains("exit status: 7"), "{reason}");
        assert!(failed["loading_micros"].is_u64(), "{failed}");
        assert!(failed["drain_micros"].is_null(), "{failed}");
    }
    assert!(records[1]["loading_micros"].is_u64(), "{told}");
    assert_eq!(told["program"]["pid"], now);
    assert_eq!(told["state"], "serving");
    assert_eq!(told["way"], "signal");

    let metrics = upgraded.ask("/greenroom/metrics").body;
    for (outcome, count) in [("serves", 1), ("failed", 2), ("refused", 0)] {
        let line = format!("greenroom_upgrades_total{{outcome=\"{outcome}\"}} {count}\n");
        assert!(metrics.contains(&line), "{line}{metrics}");
    }
}

#[test]
fn one_that_is_under_way_and_a_version_that_drains_are_shown() {
    let mut upgraded = Upgraded::first();
    let go = upgraded.versions.directory.path().join("go");
    let program = env!("CARGO_BIN_EXE_greenroom");
    upgraded.versions.replace_by(&format!(
        "until [ -e {} ]; do [ -e \"$0\" ] || exit 1; sleep 0.05; done; exec {program} \"$@\"",
        go.display()
    ));
    // A request whose body does not come keeps the first version.
    let mut client = upgraded.versions.first.connect();
    let head = b"POST /echo HTTP/1.1\r\nHost: here\r\nContent-Length: 4\r\n\r\n";
    std::io::Write::write_all(&mut client, head).unwrap();
    let (first, asked) = (upgraded.versions.pid, upgraded.versions.pid);
    let asking = std::thread::spawn(move || crate::versions::ask(asked));
    let loading = |upgraded: &Upgraded| {
        let now = || upgraded.upgrades();
        wait::until("an upgrade under way", PATIENCE, now, |told| {
            told["state"] == "upgrading" && told["next_pid"].is_u64()
        })
    };
    let next = loading(&upgraded)["next_pid"].as_u64().unwrap();
    let text = upgraded.ask("/greenroom/status.txt").body;
    let said = format!("serves; its next version loads, next version process {next} loads for");
    assert!(text.contains(&said), "{text}");

    std::fs::write(go, "").unwrap();
    assert!(asking.join().unwrap().status.success());
    upgraded.versions.now(u32::try_from(next).unwrap());
    let shown = upgraded.upgrades();
    assert_eq!(shown["before"]["pid"], first, "{shown}");
    let text = upgraded.ask("/greenroom/status.txt").body;
    assert!(
        text.contains(&format!("process {first} drains for")),
        "{text}"
    );

    std::io::Write::write_all(&mut client, b"body").unwrap();
    upgraded.versions.gone(first);
    let now = || upgraded.upgrades();
    wait::until("the drain's end", PATIENCE, now, |told| {
        told["before"].is_null() && told["records"][0]["drain_micros"].is_u64()
    });
}
