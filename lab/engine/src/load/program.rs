//! Programs as loads: ab, and those that print their figures.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use greenroom_load::run::Stop;
use greenroom_load::verdict::Processes;
use procfs::process::Process;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use serde_json::Value;

use crate::declare::Load;
use crate::figures::Figures;
use crate::words::Words;

/// The time after which a load is killed that says nothing itself.
pub(super) const LIMIT: Duration = Duration::from_mins(3);
const POLL: Duration = Duration::from_millis(5);
/// The status of `greenroom bench` whose rate was not kept.
const RATE_MISSED: i32 = 3;
const POLLS_A_SAMPLE: u32 = 20;
/// The samples in which a program's memory settles, a minute; of a shorter run it is the half.
const SETTLING_SAMPLES_MAX: usize = 600;

/// The output of a program that ended well, and what it used.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) stdout: String,
    pub(super) usage: Figures,
}

/// Returns the command of a load that is a program.
///
/// # Errors
/// If a placeholder is not known.
pub(super) fn command(load: &Load, words: &Words) -> anyhow::Result<Vec<String>> {
    match (&load.ab, &load.bench, &load.command) {
        (Some(arguments), ..) => words.command(&format!("ab -q {arguments}")),
        (_, Some(arguments), _) => words.command(&format!(
            "{{greenroom}} bench -q --json /dev/stdout {arguments}"
        )),
        (.., command) => words.command(command.as_deref().unwrap_or_default()),
    }
}

/// Runs a program to its end; kills it after `limit`, or when the lab is to stop.
///
/// # Errors
/// If it cannot be started, fails, or takes too long; with the end of its errors.
pub(super) fn run(command: &[String], limit: Duration, halt: &Stop) -> anyhow::Result<Finished> {
    let text = || command.join(" ");
    let mut child = Command::new(&command[0])
        .args(&command[1..])
        // Its error is to be among the last lines.
        .env("RUST_BACKTRACE", "0")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .with_context(|| format!("cannot start {}", text()))?;
    let stdout = drained(child.stdout.take());
    let stderr = drained(child.stderr.take());
    let usage = wait(&child, limit, halt);
    // With all that it started; until it is waited for, the group is its own.
    let killed = kill_process_group(Pid::from_child(&child), Signal::KILL);
    let status = child.wait()?;
    killed.with_context(|| format!("cannot kill {}", text()))?;
    let usage = usage?;
    let [stdout, stderr] = [stdout, stderr].map(|output| output.join().unwrap_or_default());
    match usage {
        None if halt.is_stopped() => bail!("{} was killed: the lab was interrupted", text()),
        None => bail!("{} was killed after {limit:?}", text()),
        Some(_) if !status.success() && !has_missed_its_rate(command, status) => {
            let last: Vec<_> = stderr.lines().rev().take(5).collect();
            let last: Vec<_> = last.into_iter().rev().collect();
            bail!("{} ended with {status}: {}", text(), last.join(" | "))
        }
        Some(usage) => {
            // What it says beside its figures.
            eprint!("{stderr}");
            Ok(Finished { stdout, usage })
        }
    }
}

/// Returns true if `greenroom bench` says that it missed its rate: that is a figure, no failure.
fn has_missed_its_rate(command: &[String], status: ExitStatus) -> bool {
    command.get(1).is_some_and(|word| word == "bench") && status.code() == Some(RATE_MISSED)
}

/// Waits for its end; returns what it used, or `None` when it has to be killed.
fn wait(child: &Child, limit: Duration, halt: &Stop) -> anyhow::Result<Option<Figures>> {
    let begin = Instant::now();
    let mut processes = Processes::of(child.id());
    let mut memory = Vec::new();
    for poll in 0_u32.. {
        // Until it is waited for, its last account is there.
        let flags = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let has_ended = waitid(WaitId::Pid(Pid::from_child(child)), flags)?.is_some();
        let is_due = has_ended || poll % POLLS_A_SAMPLE == 0;
        if let Some(processes) = processes.as_mut().filter(|_| is_due) {
            processes.sample();
            memory.extend(resident_mib(child.id()));
        }
        if has_ended {
            break;
        }
        if begin.elapsed() > limit || halt.is_stopped() {
            return Ok(None);
        }
        thread::sleep(POLL);
    }
    let mut figures =
        Figures::from([("elapsed_seconds".to_owned(), begin.elapsed().as_secs_f64())]);
    if let Some(usage) = processes.map(|processes| processes.usage()) {
        figures.insert("user_seconds".to_owned(), usage.user.as_secs_f64());
        figures.insert("system_seconds".to_owned(), usage.system.as_secs_f64());
        figures.insert("rss_mib".to_owned(), super::mebibytes(usage.rss_bytes_max));
    }
    figures.extend(growth_mib(&memory).map(|mib| ("rss_growth_mib".to_owned(), mib)));
    Ok(Some(figures))
}

/// Returns the memory of a process; `None` when it has ended.
fn resident_mib(pid: u32) -> Option<f64> {
    let stat = Process::new(i32::try_from(pid).ok()?).ok()?.stat().ok()?;
    (stat.rss > 0).then(|| super::mebibytes(stat.rss * procfs::page_size()))
}

/// Returns by how much memory grew after it had settled.
fn growth_mib(samples: &[f64]) -> Option<f64> {
    let settling = SETTLING_SAMPLES_MAX.min(samples.len() / 2);
    let (settled, after) = samples[settling..].split_first()?;
    Some(after.iter().fold(*settled, |most, one| most.max(*one)) - settled)
}

fn drained<R: Read + Send + 'static>(pipe: Option<R>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // What was read until an error is still the output.
            let _ = pipe.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// The reason why a system has no figures in a case, given by its program as `{"missing": "…"}`.
#[derive(Debug)]
pub(crate) struct Missing(pub(crate) String);

impl std::error::Error for Missing {}

impl fmt::Display for Missing {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// Reads the figures and the texts of a program that prints a JSON object as its last line.
///
/// # Errors
/// If the last line is something else, or [`Missing`].
pub(super) fn of_json(stdout: &str) -> anyhow::Result<(Figures, BTreeMap<String, String>)> {
    let mut lines = stdout.lines().rev();
    let last = lines.find(|line| !line.trim().is_empty());
    let last = last.unwrap_or_default();
    let value: Value = serde_json::from_str(last)
        .with_context(|| format!("the last line of its output is no JSON: {last:?}"))?;
    let object = value
        .as_object()
        .with_context(|| format!("{last:?} is no object"))?;
    if let Some(why) = object.get("missing").and_then(Value::as_str) {
        return Err(Missing(why.to_owned()).into());
    }
    let all = || object.iter();
    let numbers = all().filter_map(|(key, value)| Some((key.clone(), value.as_f64()?)));
    let texts = all().filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())));
    Ok((numbers.collect(), texts.collect()))
}

/// Reads ab's report.
///
/// # Errors
/// If a line that every report has is missing.
pub(super) fn of_ab(stdout: &str) -> anyhow::Result<Figures> {
    let mut figures = Figures::new();
    for (name, label) in [
        ("seconds", "Time taken for tests:"),
        ("rate", "Requests per second:"),
        ("complete", "Complete requests:"),
        ("failed", "Failed requests:"),
        ("p50_ms", "  50%"),
        ("p90_ms", "  90%"),
        ("p99_ms", "  99%"),
        ("longest_ms", " 100%"),
        ("max_ms", " 100%"),
    ] {
        let value = after(stdout, label).with_context(|| format!("ab printed no {label:?}"))?;
        figures.insert(name.to_owned(), value);
    }
    let not_2xx = after(stdout, "Non-2xx responses:").unwrap_or(0.0);
    figures.insert("non_2xx".to_owned(), not_2xx);
    Ok(figures)
}

/// Reads the report that `greenroom bench` writes as JSON behind the one in words; of its first
/// stream.
///
/// # Errors
/// If there is none.
pub(super) fn of_bench(stdout: &str) -> anyhow::Result<Figures> {
    let begin = stdout
        .find("\n{")
        .context("greenroom bench printed no JSON")?;
    let report: Value = serde_json::from_str(&stdout[begin..])?;
    let mut figures = Figures::new();
    for (name, pointer, unit) in [
        ("complete", "/requests/answered", 1.0),
        ("sent", "/requests/sent", 1.0),
        ("missed", "/requests/missed_share", 1.0),
        ("rate", "/answers_per_second", 1.0),
        ("p50_ms", "/latency_ns/p50", 1e6),
        ("p90_ms", "/latency_ns/p90", 1e6),
        ("p99_ms", "/latency_ns/p99", 1e6),
        ("p999_ms", "/latency_ns/p99.9", 1e6),
        ("max_ms", "/latency_ns/max", 1e6),
        ("late_p99_ms", "/generator_lag_ns/p99", 1e6),
    ] {
        let value = report.pointer(&format!("/streams/0{pointer}"));
        let value = value.and_then(Value::as_f64).context(pointer)?;
        figures.insert(name.to_owned(), value / unit);
    }
    let told = ["user", "system"].map(|part| &report["generator"][format!("{part}_seconds")]);
    let told = told.iter().filter_map(|seconds| seconds.as_f64()).sum();
    figures.insert("told_seconds".to_owned(), told);
    Ok(figures)
}

fn after(text: &str, label: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(label))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> anyhow::Result<Finished> {
        run(
            &["sh", "-c", script].map(ToOwned::to_owned),
            limit,
            &Stop::default(),
        )
    }

    #[test]
    fn the_last_line_has_the_figures() {
        let script = "echo begins; echo '{\"a\": 1.5, \"name\": \"x\"}'; echo";
        let finished = shell(script, LIMIT).expect("it ends well");
        let (figures, texts) = of_json(&finished.stdout).expect("an object");
        assert_eq!(figures, Figures::from([("a".to_owned(), 1.5)]));
        assert_eq!(texts["name"], "x");
        assert!(finished.usage.contains_key("elapsed_seconds"));
    }

    #[test]
    fn a_program_that_fails_or_hangs_is_reported() {
        let error = shell("echo why >&2; exit 3", LIMIT)
            .expect_err("it fails")
            .to_string();
        assert!(error.contains("why") && error.contains('3'), "{error}");
        let error = shell("exec sleep 600", Duration::from_millis(20)).expect_err("it hangs");
        assert!(error.to_string().contains("killed"), "{error}");
        // What it has started holds its output.
        let error = shell("sleep 600 & wait", Duration::from_millis(20)).expect_err("it hangs");
        assert!(error.to_string().contains("killed"), "{error}");
        assert!(of_json("no figures").is_err());
        let error = of_json(r#"{"missing": "no topics"}"#).expect_err("no figures");
        assert_eq!(
            error.downcast::<Missing>().expect("its kind").0,
            "no topics"
        );
    }

    #[test]
    fn half_of_a_short_run_may_settle() {
        let long = |grown: f64| [vec![4.0; 600], vec![8.0; 700], vec![grown; 10], vec![8.0]];
        let growth = |samples: &[f64]| format!("{:?}", growth_mib(samples));
        assert_eq!(growth(&long(8.5).concat()), "Some(0.5)");
        assert_eq!(growth(&long(8.0).concat()), "Some(0.0)");
        assert_eq!(growth(&[4.0, 4.0, 8.0, 8.25, 8.0]), "Some(0.25)");
        assert_eq!(growth(&[]), "None");
    }

    #[test]
    fn the_report_of_ab_is_read() {
        let report = "Time taken for tests:   2.040 seconds\nComplete requests:      200\n\
            Failed requests:        0\nRequests per second:    98.04 [#/sec] (mean)\n\
            \x20 50%   1012\n  90%   2020\n  99%   2031\n 100%   2035 (longest request)\n";
        let figures = of_ab(report).expect("complete");
        assert_eq!((figures["seconds"], figures["longest_ms"]), (2.04, 2035.0));
        assert!((figures["non_2xx"]).abs() < 1e-9);
        assert!(of_ab("apr_socket_recv: Connection refused").is_err());
    }
}
