//! `greenroom bench`: any loop.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};

use super::priority::Priority;
use super::run_accepting;
use crate::binaries::Binaries;
use crate::measure::ChildrenCpu;
use crate::process::{LOAD_CORE, placed};

/// The program's exit status when it could not keep the asked rate; its report says so too.
const RATE_MISSED: i32 = 3;
/// The program's exit status when nothing got a response; its report says so too.
const NO_RESPONSE: i32 = 1;

/// One run of `greenroom bench`, with one thread for each stream.
#[derive(Clone, Debug)]
pub struct GreenroomBench {
    program: PathBuf,
    core: Option<usize>,
    priority: Priority,
    arguments: Vec<String>,
}

/// The report of a run.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct GreenroomReport {
    /// Time from the begin to the last response.
    pub elapsed_seconds: f64,
    streams: Vec<Stream>,
    generator: Generator,
    /// CPU time of the program itself, as the kernel counted it from outside.
    #[serde(skip_deserializing)]
    pub cpu: ChildrenCpu,
}

/// The outcomes of the requests of a stream.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Stream {
    requests: Requests,
    statuses: BTreeMap<u16, u64>,
    failures: BTreeMap<String, Failure>,
    latency_ns: Times,
    good_latency_ns: Times,
    bad_latency_ns: Times,
    generator_lag_ns: Times,
    /// The time line, in order.
    pub timeline: Vec<Stretch>,
}

/// A stretch of the time line, with the responses in it.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct Stretch {
    /// Its begin, since the begin of the run.
    pub begin_seconds: f64,
    /// Its length.
    pub length_seconds: f64,
    /// Responses with a status below 400.
    pub good: u64,
    latency_ns: Brief,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
struct Brief {
    p50: f64,
    p99: f64,
    max: f64,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
struct Failure {
    count: u64,
    first: String,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
struct Generator {
    user_seconds: f64,
    system_seconds: f64,
}

/// Counts of requests.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct Requests {
    /// Requests due by the schedule of an open loop; 0 in a closed loop.
    pub due: u64,
    /// Requests written to a socket.
    pub sent: u64,
    /// Responses, of any status.
    pub answered: u64,
    /// The share of those due that was not sent before the schedule's end.
    pub missed_share: f64,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
struct Times {
    min: f64,
    p50: f64,
    p90: f64,
    p99: f64,
    #[serde(rename = "p99.9")]
    p99_9: f64,
    max: f64,
}

/// Times in milliseconds.
#[derive(Clone, Copy, Debug)]
pub struct Latency {
    /// The shortest.
    pub min_ms: f64,
    /// Half of all are no longer.
    pub p50_ms: f64,
    /// 90 % are no longer.
    pub p90_ms: f64,
    /// 99 % are no longer.
    pub p99_ms: f64,
    /// 99.9 % are no longer.
    pub p99_9_ms: f64,
    /// The longest.
    pub max_ms: f64,
}

impl GreenroomBench {
    /// Creates a run of one request, as ab without flags.
    ///
    /// # Errors
    /// If the program was not built.
    pub fn new(binaries: &Binaries) -> anyhow::Result<Self> {
        Ok(Self {
            program: binaries.path("greenroom")?.to_owned(),
            core: Some(LOAD_CORE),
            priority: Priority::Usual,
            arguments: Vec::new(),
        })
    }

    /// Sets another core than the load's.
    #[must_use]
    pub fn on_core(mut self, core: usize) -> Self {
        self.core = Some(core);
        self
    }

    /// Removes the core: the program shares them all with the server.
    #[must_use]
    pub fn on_all_cores(mut self) -> Self {
        self.core = None;
        self
    }

    /// Sets the priority.
    #[must_use]
    pub fn priority(mut self, priority: Priority) -> Self {
        self.priority = priority;
        self
    }

    /// Adds further flags of `greenroom bench`.
    #[must_use]
    pub fn flags<A: Into<String>>(mut self, flags: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(flags.into_iter().map(Into::into));
        self
    }

    /// Runs a closed loop on so many connections that are kept, for this time.
    #[must_use]
    pub fn keep_alive(self, connections: u32, seconds: u32) -> Self {
        let (connections, seconds) = (connections.to_string(), seconds.to_string());
        self.flags(["-k", "-c", &connections, "-t", &seconds])
    }

    /// Runs a closed loop with a connection for each request, so many at once.
    #[must_use]
    pub fn connections(self, requests: u64, concurrency: u32) -> Self {
        self.flags(["-n", &requests.to_string(), "-c", &concurrency.to_string()])
    }

    /// Runs an open loop on connections that are kept, as many as it takes.
    #[must_use]
    pub fn open_loop(self, rate: u32, seconds: u32) -> Self {
        let (rate, seconds) = (rate.to_string(), seconds.to_string());
        self.flags(["-k", "--rate", &rate, "-t", &seconds])
    }

    fn command(&self, url: &str, json: &Path) -> Command {
        let mut command = self.priority.apply(placed(self.core, &self.program));
        command.args(["bench", "-q"]).args(&self.arguments);
        command.arg("--json").arg(json).arg(url);
        command
    }

    /// Runs to its end. Requests may fail: that is for the caller to judge.
    ///
    /// # Errors
    /// If the program fails.
    pub fn run(&self, url: &str) -> anyhow::Result<GreenroomReport> {
        self.run_accepting(url, &[0, RATE_MISSED])
    }

    /// Runs to its end, also against a server that no longer responds.
    ///
    /// # Errors
    /// If the program fails.
    pub fn run_against_all_odds(&self, url: &str) -> anyhow::Result<GreenroomReport> {
        self.run_accepting(url, &[0, NO_RESPONSE, RATE_MISSED])
    }

    fn run_accepting(&self, url: &str, statuses: &[i32]) -> anyhow::Result<GreenroomReport> {
        let json = JsonFile::new();
        let finished = run_accepting(&mut self.command(url, &json.0), statuses)?;
        let mut report = json.read()?;
        report.cpu = finished.cpu;
        Ok(report)
    }

    /// Runs to its end as [`GreenroomBench::run_well`], and calls `watch` with its process at
    /// intervals.
    ///
    /// # Errors
    /// If the program fails, or a request does not get 200.
    pub fn run_watched(
        &self,
        url: &str,
        every: Duration,
        mut watch: impl FnMut(u32),
    ) -> anyhow::Result<GreenroomReport> {
        let json = JsonFile::new();
        let before = ChildrenCpu::now()?;
        let mut command = self.command(url, &json.0);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let mut child = command.spawn().context("cannot start greenroom bench")?;
        let status = loop {
            thread::sleep(every);
            match child.try_wait()? {
                Some(status) => break status,
                None => watch(child.id()),
            }
        };
        ensure!(status.success(), "greenroom bench: {status}");
        let mut report = json.read()?;
        report.cpu = before.until(ChildrenCpu::now()?);
        report.ensure_all_good()?;
        Ok(report)
    }

    /// Runs to its end; every request must get 200.
    ///
    /// # Errors
    /// If one is not.
    pub fn run_well(&self, url: &str) -> anyhow::Result<GreenroomReport> {
        let report = self.run(url)?;
        report.ensure_all_good()?;
        Ok(report)
    }
}

/// The file of a report; it is removed when dropped.
struct JsonFile(PathBuf);

impl JsonFile {
    fn new() -> Self {
        // A driver may have several runs in flight at once.
        static RUNS: AtomicU64 = AtomicU64::new(0);
        let run = RUNS.fetch_add(1, Ordering::Relaxed);
        let name = format!("greenroom-lab-{}-{run}.json", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    fn read(&self) -> anyhow::Result<GreenroomReport> {
        let name = || self.0.display().to_string();
        let file = File::open(&self.0).with_context(name)?;
        serde_json::from_reader(BufReader::new(file)).with_context(name)
    }
}

impl Drop for JsonFile {
    fn drop(&mut self) {
        // It is not there if the program failed.
        let _ = fs::remove_file(&self.0);
    }
}

impl GreenroomReport {
    /// Returns the streams, in the order of the command line; there is at least one.
    #[must_use]
    pub fn streams(&self) -> &[Stream] {
        &self.streams
    }

    /// Returns the request counts of the first stream.
    #[must_use]
    pub fn requests(&self) -> Requests {
        self.streams[0].requests
    }

    /// Returns the requests of the first stream that got status 200.
    #[must_use]
    pub fn good(&self) -> u64 {
        self.streams[0].with_status(200)
    }

    /// Returns the latencies of the first stream, from the intended time.
    #[must_use]
    pub fn latency(&self) -> Latency {
        self.streams[0].latency()
    }

    /// Returns the program's own delay in the first stream.
    #[must_use]
    pub fn lag(&self) -> Latency {
        Latency::of(self.streams[0].generator_lag_ns)
    }

    /// Returns the CPU seconds that the program reports for its threads while they made load.
    #[must_use]
    pub fn told_cpu_seconds(&self) -> f64 {
        self.generator.user_seconds + self.generator.system_seconds
    }

    /// Fails unless every request of the first stream that was sent got 200.
    ///
    /// # Errors
    /// Names the outcomes of the others.
    pub fn ensure_all_good(&self) -> anyhow::Result<()> {
        let Stream {
            requests,
            statuses,
            failures,
            ..
        } = &self.streams[0];
        ensure!(
            self.good() == requests.sent && self.good() > 0,
            "greenroom bench: {} of {} got status 200; statuses {statuses:?}, failures \
            {failures:?}",
            self.good(),
            requests.sent
        );
        Ok(())
    }
}

impl Stream {
    /// Returns the request counts.
    #[must_use]
    pub fn requests(&self) -> Requests {
        self.requests
    }

    /// Returns the requests that got this status.
    #[must_use]
    pub fn with_status(&self, status: u16) -> u64 {
        self.statuses.get(&status).copied().unwrap_or_default()
    }

    /// Returns the requests that failed in one of these ways, named as `greenroom bench` names
    /// them.
    #[must_use]
    pub fn failed(&self, kinds: &[&str]) -> u64 {
        let counts = kinds.iter().filter_map(|kind| self.failures.get(*kind));
        counts.map(|failure| failure.count).sum()
    }

    /// Returns the responses with a status below 400 per second, of the time line's stretches whose
    /// middle is between two times; 0 if there is none.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
    pub fn good_per_second(&self, from_seconds: u32, to_seconds: u32) -> f64 {
        let (from, to) = (f64::from(from_seconds), f64::from(to_seconds));
        // The ends of a stretch stray on a loaded generator; its middle does not.
        let counted = self.timeline.iter().filter(|stretch| {
            let middle = stretch.begin_seconds.midpoint(stretch.end_seconds());
            from < middle && middle < to
        });
        let (good, lasted) = counted.fold((0, 0.0), |(good, lasted), stretch| {
            (good + stretch.good, lasted + stretch.length_seconds)
        });
        if lasted > 0.0 {
            good as f64 / lasted
        } else {
            0.0
        }
    }

    /// Returns the latencies from the intended time, of responses and of requests that timed out.
    #[must_use]
    pub fn latency(&self) -> Latency {
        Latency::of(self.latency_ns)
    }

    /// Returns the latencies of responses with a status below 400.
    #[must_use]
    pub fn good_latency(&self) -> Latency {
        Latency::of(self.good_latency_ns)
    }

    /// Returns the latencies of responses with a status of 400 or more.
    #[must_use]
    pub fn bad_latency(&self) -> Latency {
        Latency::of(self.bad_latency_ns)
    }
}

impl Stretch {
    /// Returns its end, since the begin of the run.
    #[must_use]
    pub fn end_seconds(&self) -> f64 {
        self.begin_seconds + self.length_seconds
    }

    /// Returns the time that 99 % of its responses did not exceed.
    #[must_use]
    pub fn p99_ms(&self) -> f64 {
        millis(self.latency_ns.p99)
    }

    /// Returns the longest time of its responses.
    #[must_use]
    pub fn max_ms(&self) -> f64 {
        millis(self.latency_ns.max)
    }
}

fn millis(nanos: f64) -> f64 {
    nanos / 1e6
}

impl Latency {
    fn of(times: Times) -> Self {
        Self {
            min_ms: millis(times.min),
            p50_ms: millis(times.p50),
            p90_ms: millis(times.p90),
            p99_ms: millis(times.p99),
            p99_9_ms: millis(times.p99_9),
            max_ms: millis(times.max),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = r#"{
        "elapsed_seconds": 1.5,
        "streams": [{
            "requests": { "due": 4, "sent": 3, "answered": 3, "missed_share": 0.25, "later": 0 },
            "statuses": { "200": 2, "503": 1 },
            "failures": {
                "timeout": { "count": 3, "first": "" },
                "reset": { "count": 4, "first": "" }
            },
            "latency_ns": { "min": 1, "p50": 2000000, "p90": 3, "p99": 4, "p99.9": 5, "max": 6 },
            "good_latency_ns": { "min": 1, "p50": 2, "p90": 3, "p99": 4, "p99.9": 5, "max": 6 },
            "bad_latency_ns": {
                "min": 1, "p50": 2, "p90": 3, "p99": 7000000, "p99.9": 5, "max": 6
            },
            "generator_lag_ns": { "min": 1, "p50": 2, "p90": 3, "p99": 4, "p99.9": 5, "max": 6 },
            "timeline": [
                { "begin_seconds": 0.0, "length_seconds": 1.001, "good": 9,
                  "latency_ns": { "p50": 1, "p99": 2000000, "max": 3 } },
                { "begin_seconds": 1.001, "length_seconds": 1.0, "good": 5,
                  "latency_ns": { "p50": 1, "p99": 2, "max": 3 } },
                { "begin_seconds": 2.001, "length_seconds": 0.3, "good": 1,
                  "latency_ns": { "p50": 1, "p99": 2, "max": 3 } }
            ]
        }],
        "generator": { "user_seconds": 0.5, "system_seconds": 1.0 }
    }"#;

    #[test]
    fn a_report_is_read_and_only_200_is_good() {
        let report: GreenroomReport = serde_json::from_str(REPORT).expect("a report");
        assert_eq!(report.good(), 2);
        assert!((report.latency().p50_ms - 2.0).abs() < f64::EPSILON);
        let stream = &report.streams()[0];
        assert!((stream.bad_latency().p99_ms - 7.0).abs() < f64::EPSILON);
        assert_eq!(stream.with_status(503), 1);
        assert_eq!(stream.failed(&["reset", "timeout", "tls"]), 7);
        assert!((stream.timeline[0].p99_ms() - 2.0).abs() < f64::EPSILON);
        assert!((stream.good_per_second(1, 2) - 5.0).abs() < f64::EPSILON);
        assert!(stream.good_per_second(5, 6).abs() < f64::EPSILON);
        let error = report.ensure_all_good().expect_err("one was refused");
        assert!(error.to_string().contains("2 of 3"), "{error}");
    }
}
