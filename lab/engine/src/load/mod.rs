//! The loads of a step, all at the same time.

mod http;
mod program;

pub(crate) use program::Missing;

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use greenroom_load::plan::Plan;
use greenroom_load::run::{Stop, StreamMeasurement, run};
use greenroom_load::verdict::{Processes, ServerUsage};

use rustix::process::{Pid, Signal, kill_process};

use crate::declare::{Load, SignalAt, Step};
use crate::figures::Figures;
use crate::words::Words;

const SAMPLE_INTERVAL: Duration = Duration::from_millis(250);
const POLL: Duration = Duration::from_millis(5);

/// The measurements of a step.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    pub(crate) figures: Figures,
    /// Texts that commands printed, such as a cookie, for placeholders of later steps.
    pub(crate) texts: BTreeMap<String, String>,
    /// The HTTP loads whole, for plots.
    pub(crate) streams: Vec<StreamMeasurement>,
    /// The server's use of the machine.
    pub(crate) usage: Option<ServerUsage>,
    /// Responses of all HTTP loads, and requests of ab.
    pub(crate) responses: f64,
    /// The cores that HTTP loads took.
    pub(crate) generator_cores: f64,
}

/// Runs all loads of a step.
///
/// # Errors
/// If one cannot be made. Requests that fail are figures.
pub(crate) fn measure(
    step: &Step,
    words: &Words,
    figures: &Figures,
    server: Option<u32>,
    halt: &Stop,
) -> anyhow::Result<Measured> {
    let is_program = |load: &&Load| [&load.path, &load.url, &load.urls] == [&None; 3];
    let (programs, requests): (Vec<_>, Vec<_>) = step.loads.iter().partition(is_program);
    let streams = requests.iter().map(|load| {
        http::stream(load, words, figures).with_context(|| format!("load {:?}", load.name))
    });
    let plan = Plan {
        streams: streams.collect::<anyhow::Result<_>>()?,
        interval: SAMPLE_INTERVAL,
    };
    let commands = programs.iter().map(|load| program::command(load, words));
    let commands: Vec<_> = commands.collect::<anyhow::Result<_>>()?;
    let processes = server.and_then(Processes::of);
    thread::scope(|scope| {
        let watch = processes.clone().filter(|_| plan.streams.is_empty());
        let begin = |(load, command): (&&Load, &Vec<String>)| {
            let limit = load.limit_seconds.map(Duration::from_secs);
            let limit = limit.unwrap_or(program::LIMIT);
            let (load, command) = (load.name.clone(), command.clone());
            scope.spawn(move || (program::run(&command, limit, halt), load))
        };
        let running: Vec<_> = programs.iter().zip(&commands).map(begin).collect();
        let signal = step.signal.as_ref().zip(server);
        let signal = signal.map(|(signal, pid)| scope.spawn(move || send(signal, pid)));
        let mut measured = Measured::default();
        if plan.streams.is_empty() {
            let is_over = || running.iter().all(thread::ScopedJoinHandle::is_finished);
            measured.usage = watch.map(|processes| watched(processes, is_over));
        } else {
            http::add(run(&plan, processes, halt, &mut |_| ())?, &mut measured);
            for (load, stream) in requests.iter().zip(&measured.streams) {
                let found = http::windows(load, stream, words, figures)?;
                measured.figures.extend(found);
            }
        }
        for (program, load) in running.into_iter().zip(&programs) {
            let (output, name) = program.join().map_err(|_| anyhow::anyhow!("a panic"))?;
            let output = output.with_context(|| format!("load {name:?}"))?;
            let without_texts = |figures| (figures, BTreeMap::new());
            let found = match (&load.ab, &load.bench) {
                (Some(_), _) => program::of_ab(&output.stdout).map(without_texts),
                (None, Some(_)) => program::of_bench(&output.stdout).map(without_texts),
                (None, None) => program::of_json(&output.stdout),
            };
            let (found, texts) = found.with_context(|| format!("load {name:?}"))?;
            let texts = texts.into_iter();
            let named = texts.map(|(key, text)| (format!("{name}.{key}"), text));
            measured.texts.extend(named);
            measured.responses += found.get("complete").copied().unwrap_or(0.0);
            let all = found.into_iter().chain(output.usage);
            measured
                .figures
                .extend(all.map(|(key, value)| (format!("{name}.{key}"), value)));
        }
        if let Some(signal) = signal {
            signal.join().map_err(|_| anyhow::anyhow!("a panic"))??;
        }
        Ok(measured)
    })
}

/// Samples a server until its loads are over.
fn watched(mut processes: Processes, is_over: impl Fn() -> bool) -> ServerUsage {
    loop {
        processes.sample();
        let sampled = Instant::now();
        while sampled.elapsed() < SAMPLE_INTERVAL {
            if is_over() {
                processes.sample();
                return processes.usage();
            }
            thread::sleep(POLL);
        }
    }
}

/// Sends the server the signal of a step when its time has come.
fn send(signal: &SignalAt, pid: u32) -> anyhow::Result<()> {
    thread::sleep(Duration::from_secs_f64(signal.after_seconds));
    let number = match signal.name.as_str() {
        "HUP" => Signal::HUP,
        "INT" => Signal::INT,
        "TERM" => Signal::TERM,
        "USR2" => Signal::USR2,
        name => bail!("signal {name:?} is none of HUP, INT, TERM and USR2"),
    };
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    kill_process(pid.context("no process")?, number).context("cannot send the signal")
}

#[expect(clippy::cast_precision_loss, reason = "memory of this machine")]
pub(crate) fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
