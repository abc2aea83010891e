//! One contestant's turn in a round.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;

use anyhow::Context;
use greenroom_load::compare::{Launch, Pinned, Server};
use greenroom_load::run::{Stop, StreamMeasurement};
use greenroom_load::verdict::Processes;
use nix::sys::resource::{UsageWho, getrusage};
use procfs::process::Process;
use rustix::process::{getpriority_process, setpriority_process};

use crate::declare::{Case, Contestant, Experiment};
use crate::figures::{Figures, evaluate};
use crate::words::Words;
use crate::{check, load};

const SERVICE_START: Duration = Duration::from_secs(20);

/// A turn: who is measured, by what, with which parameters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn<'a> {
    pub(crate) experiment: &'a Experiment,
    pub(crate) case: &'a Case,
    pub(crate) name: &'a str,
    pub(crate) contestant: &'a Contestant,
    pub(crate) parameters: &'a BTreeMap<String, f64>,
    /// Placeholders of builds, and `{seconds}`.
    pub(crate) words: &'a Words,
}

/// The measurements of a turn.
#[derive(Debug, Default)]
pub(crate) struct Sample {
    pub(crate) figures: Figures,
    pub(crate) streams: Vec<StreamMeasurement>,
}

impl Turn<'_> {
    /// Starts the services and the server, checks it, and runs all steps.
    ///
    /// # Errors
    /// If something does not start, the check fails, a load cannot be made, or the server ends.
    pub(crate) fn run(&self, stop: &Stop) -> anyhow::Result<Sample> {
        let mut words = self.words.clone();
        for (name, value) in self.case.vars.iter().chain(&self.contestant.vars) {
            words.set(name, value);
        }
        for (name, value) in self.parameters {
            words.set(name, value);
        }
        let _services = self.services(&mut words, stop)?;
        let mut server = self.server(&mut words, stop)?;
        let cores = self.case.load_cores.as_ref();
        let cores = words.fill(cores.unwrap_or(&self.experiment.load_cores))?;
        let _pinned = Pinned::to(Some(&cores.parse()?))?;
        let declared = self
            .contestant
            .check
            .as_ref()
            .or(self.case.check.as_ref())
            .or(self.experiment.check.as_ref());
        if let (Some(declared), Some(_)) = (declared, &server) {
            check::check(declared, &words, stop)?;
        }
        let mut sample = Sample::default();
        sample.figures.extend(self.parameters.clone());
        let mut responses = 0.0;
        let niceness = Nice::to(self.case.load_niceness).niceness();
        sample
            .figures
            .insert("load_niceness".to_owned(), niceness.into());
        for step in self.case.steps.iter().map(|step| step.of(self.name)) {
            if step.fresh {
                drop(server.take());
                server = self.server(&mut words, stop)?;
            }
            let pid = server.as_ref().map(Server::pid);
            let before = pid.map(State::of).unwrap_or_default();
            let nice = Nice::to(self.case.load_niceness);
            let measured = load::measure(&step, &words, &sample.figures, pid, stop)
                .with_context(|| output(server.as_ref()))?;
            drop(nice);
            let may_end = step.signal.is_some() || step.ends_server;
            if let Some(server) = server.as_mut().filter(|_| !may_end) {
                server.check("while it was under load")?;
            }
            responses += measured.responses;
            sample.figures.extend(measured.figures.clone());
            if let Some(pid) = pid {
                let own = of_server(&measured, before, State::of(pid)).into_iter();
                let named = own.map(|(key, value)| (format!("{}.{key}", step.name), value));
                sample.figures.extend(named);
            }
            sample.streams.extend(measured.streams);
            for (name, value) in &sample.figures {
                words.set(name, value);
            }
            let texts = measured.texts.iter();
            texts.for_each(|(name, text)| words.set(name, text));
        }
        sample.figures.extend(whole(server.take(), responses));
        for (name, expression) in &self.case.derive {
            // Without the figures that it needs, it is not there either: an empty cell.
            if let Ok(value) = words
                .fill(expression)
                .and_then(|one| evaluate(&one, &sample.figures))
            {
                sample.figures.insert(name.clone(), value);
            }
        }
        Ok(sample)
    }

    fn services(&self, words: &mut Words, stop: &Stop) -> anyhow::Result<Vec<Server>> {
        let mut services = Vec::new();
        for (name, service) in &self.experiment.services {
            let mut own = words.clone();
            let port = place(&mut own)?;
            let command = own.command(&service.start)?;
            let mut launch = Launch::new(name.clone(), command, url(port).parse()?);
            launch.cores = Some(service.cores.parse()?);
            launch.start_timeout = SERVICE_START;
            services.push(Server::start(&launch, stop)?);
            words.set(name, format!("127.0.0.1:{port}"));
        }
        Ok(services)
    }

    fn server(&self, words: &mut Words, stop: &Stop) -> anyhow::Result<Option<Server>> {
        let Some(start) = &self.contestant.start else {
            return Ok(None);
        };
        let port = place(words)?;
        for name in ["port2", "port3"] {
            words.set(name, free_port()?);
        }
        let label = self.contestant.label.clone();
        let mut launch = Launch::new(label, words.command(start)?, url(port).parse()?);
        for (name, value) in &self.contestant.environment {
            launch.environment.push((name.clone(), words.fill(value)?));
        }
        let cores = self.case.cores.as_ref().or(self.contestant.cores.as_ref());
        launch.cores = Some(cores.unwrap_or(&self.experiment.cores).parse()?);
        launch.start_timeout = Duration::from_secs(self.contestant.start_seconds);
        let server = Server::start(&launch, stop)?;
        words.set("pid", server.pid());
        Ok(Some(server))
    }
}

/// The priority of the calling thread and of what it starts, until it is dropped.
#[derive(Debug)]
struct Nice {
    before: i32,
}

impl Nice {
    /// Takes a niceness; without the right to it, or without one, it stays as it is.
    fn to(niceness: Option<i32>) -> Self {
        let before = getpriority_process(None).unwrap_or(0);
        if let Some(niceness) = niceness {
            // Only root may raise a priority; the figure tells.
            let _ = setpriority_process(None, niceness);
        }
        Self { before }
    }

    fn niceness(&self) -> i32 {
        getpriority_process(None).unwrap_or(self.before)
    }
}

impl Drop for Nice {
    fn drop(&mut self) {
        // A priority that is lowered needs no right.
        let _ = setpriority_process(None, self.before);
    }
}

/// Sets the placeholders of a free address.
fn place(words: &mut Words) -> anyhow::Result<u16> {
    let port = free_port()?;
    words.set("host", Ipv4Addr::LOCALHOST);
    words.set("port", port);
    words.set("address", format!("127.0.0.1:{port}"));
    words.set("url", url(port));
    Ok(port)
}

fn url(port: u16) -> String {
    format!("http://127.0.0.1:{port}")
}

/// Returns a port that was bound and released: the next to bind it is the server that gets it.
fn free_port() -> anyhow::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no free port")?;
    Ok(listener.local_addr()?.port())
}

fn output(server: Option<&Server>) -> String {
    let output = server.map(Server::output).unwrap_or_default();
    let last: Vec<_> = output.lines().rev().take(3).collect();
    let last: Vec<_> = last.into_iter().rev().collect();
    match last.as_slice() {
        [] => "the server printed nothing".to_owned(),
        last => format!("the server's last lines: {:?}", last.join(" | ")),
    }
}

/// Ends the server, and returns the figure of its whole life, for which the kernel counts what
/// threads did that have ended before: the context switches per response of all steps.
fn whole(server: Option<Server>, responses: f64) -> Option<(String, f64)> {
    let before = switches_of_ended()?;
    drop(server?);
    #[expect(clippy::cast_precision_loss, reason = "counts of one run")]
    let switches = (switches_of_ended()? - before) as f64;
    (responses > 0.0).then(|| ("whole.switches".to_owned(), switches / responses))
}

/// Returns the context switches of all processes that this one has started and seen end.
fn switches_of_ended() -> Option<i64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).ok()?;
    Some(usage.voluntary_context_switches() + usage.involuntary_context_switches())
}

/// The state of a server's processes at a moment.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    rss_bytes: u64,
    threads: u32,
    switches: u64,
}

impl State {
    fn of(pid: u32) -> Self {
        let mut state = Self::default();
        let Some(mut processes) = Processes::of(pid) else {
            return state;
        };
        processes.sample();
        let usage = processes.usage();
        (state.rss_bytes, state.threads) = (usage.rss_bytes_max, usage.threads_max);
        let all = processes
            .pids()
            .filter_map(|pid| Process::new(i32::try_from(pid).ok()?).ok());
        for task in all
            .filter_map(|process| process.tasks().ok())
            .flatten()
            .flatten()
        {
            if let Ok(status) = task.status() {
                let counts = [
                    status.voluntary_ctxt_switches,
                    status.nonvoluntary_ctxt_switches,
                ];
                state.switches += counts.into_iter().flatten().sum::<u64>();
            }
        }
        state
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of one run")]
fn of_server(measured: &load::Measured, before: State, after: State) -> Vec<(&'static str, f64)> {
    let mut figures = vec![("rss_start_mib", load::mebibytes(before.rss_bytes))];
    let responses = measured.responses;
    figures.push(("generator_cores", measured.generator_cores));
    if let Some(usage) = measured.usage {
        let cpu = (usage.user + usage.system).as_secs_f64();
        figures.push(("cpu_seconds", cpu));
        let waited = usage.waited.as_secs_f64() / cpu.max(1e-9);
        figures.push(("waited_percent", 100.0 * waited));
        figures.push(("rss_mib", load::mebibytes(usage.rss_bytes_max)));
        figures.push(("threads", f64::from(usage.threads_max.max(after.threads))));
        if responses > 0.0 {
            let each = 1e6 / responses;
            figures.push(("cpu_us", cpu * each));
            figures.push(("cpu_user_us", usage.user.as_secs_f64() * each));
            figures.push(("cpu_system_us", usage.system.as_secs_f64() * each));
        }
    }
    // Threads that ended took their counts with them: then it is a lower bound, or nothing.
    if responses > 0.0 && after.switches >= before.switches {
        figures.push((
            "switches",
            (after.switches - before.switches) as f64 / responses,
        ));
    }
    figures
}
