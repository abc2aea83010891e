//! `cargo xtask test`: builds all tests of the workspace, and runs their programs a few at a time.
//!
//! `cargo test` runs one program after the other. Most of ours drive other processes, and wait for
//! them with cores to spare.

use std::collections::VecDeque;
use std::env;
use std::fs::{self, File};
use std::io::{self, BufReader, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use cargo_metadata::{Artifact, Message};

/// The targets that take longest, which begin first: what runs alone at the end costs most.
const LONG: [&str; 7] = [
    "browser",
    "operators",
    "api",
    "faults",
    "server",
    "http3",
    "bench_compare",
];

/// The time that a program may take. The longest takes a fifth of it, on two slow cores.
const LIMIT: Duration = Duration::from_mins(20);

/// The time between two looks at whether a program has ended.
const PAUSE: Duration = Duration::from_millis(20);

/// The beginnings of the names of variables that `cargo run` sets.
const OF_PACKAGE: [&str; 3] = ["CARGO_BIN_", "CARGO_MANIFEST_", "CARGO_PKG_"];

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Programs that run at a time [default: as many as there are cores]
    #[arg(long, short)]
    jobs: Option<NonZeroUsize>,
    /// Have programs that fail beside others run once more alone, which counts then; both are told
    #[arg(long)]
    again: bool,
    /// Arguments for each program, such as a part of tests' names
    #[arg(last = true)]
    arguments: Vec<String>,
}

/// A program of tests, as cargo has built it.
struct Program {
    title: String,
    target: String,
    path: PathBuf,
    /// Its package's directory, in which it runs.
    directory: PathBuf,
}

impl Program {
    fn of(artifact: Artifact) -> Option<Self> {
        let path = artifact.executable.filter(|_| artifact.profile.test)?;
        let directory = artifact.manifest_path.parent()?.to_owned();
        let package = directory.file_name()?.to_owned();
        let source = artifact.target.src_path;
        let source = source.strip_prefix(&directory).unwrap_or(&source);
        Some(Self {
            title: format!("{source} of {package} ({path})"),
            target: artifact.target.name,
            path: path.into(),
            directory: directory.into(),
        })
    }

    /// Runs it to its end, or its limit, with what it says written to `log`.
    fn run(&self, arguments: &[String], log: &Path) -> Result<ExitStatus> {
        let out = File::create(log)?;
        let mut command = Command::new(&self.path);
        command.args(arguments).current_dir(&self.directory);
        command.env("CARGO_MANIFEST_DIR", &self.directory);
        command.stdin(Stdio::null());
        command.stdout(out.try_clone()?).stderr(out);
        let child = command.spawn();
        wait(child.with_context(|| format!("cannot start {}", self.path.display()))?)
    }
}

fn wait(mut child: Child) -> Result<ExitStatus> {
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if begin.elapsed() > LIMIT {
            child.kill()?;
            child.wait()?;
            bail!("killed: it took over {LIMIT:?}");
        }
        thread::sleep(PAUSE);
    }
}

/// A program that failed, and why.
type Failed = (Program, String);

/// Builds and runs the tests of the repository at `root`, and those in documentation.
pub(crate) fn run(root: &Path, options: &Options) -> Result<ExitCode> {
    let programs = build(root)?;
    let (count, begin) = (programs.len(), Instant::now());
    let jobs = options.jobs.or(thread::available_parallelism().ok());
    let jobs = jobs.map_or(1, NonZeroUsize::get);
    let logs = root.join("target/tests");
    fs::create_dir_all(&logs)?;
    let mut failed = run_all(programs, jobs, &options.arguments, &logs);
    let mut out = io::stdout();
    if options.again && !failed.is_empty() {
        for (program, why) in &failed {
            writeln!(out, "FAILED beside others: {}: {why}", program.title)?;
        }
        let programs = failed.into_iter().map(|(program, _)| program).collect();
        failed = run_all(programs, 1, &options.arguments, &logs);
    }
    let is_documented = !options.arguments.is_empty() || cargo(root, "--doc").status()?.success();
    let seconds = begin.elapsed().as_secs();
    writeln!(
        out,
        "\n{count} programs of tests in {seconds} s, {jobs} at a time"
    )?;
    for (program, why) in &failed {
        writeln!(out, "FAILED: {}: {why}", program.title)?;
    }
    if failed.is_empty() && is_documented {
        return Ok(ExitCode::SUCCESS);
    }
    Ok(ExitCode::FAILURE)
}

/// Runs programs, so many at a time, and returns those that failed.
fn run_all(
    programs: VecDeque<Program>,
    jobs: usize,
    arguments: &[String],
    logs: &Path,
) -> Vec<Failed> {
    let (waiting, failed) = (Mutex::new(programs), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for job in 0..jobs {
            let log = logs.join(format!("{job}.log"));
            let (waiting, failed) = (&waiting, &failed);
            scope.spawn(move || work(waiting, failed, arguments, &log));
        }
    });
    failed.into_inner().unwrap_or_default()
}

fn cargo(root: &Path, what: &str) -> Command {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["test", "--workspace", "--locked", what]);
    command.current_dir(root);
    // `cargo run` tells this program of its package. Build scripts of others would take notice of
    // that, and half of the workspace would be built anew after each `cargo test` by hand.
    let of_package = |name: &str| OF_PACKAGE.iter().any(|begin| name.starts_with(begin));
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(of_package) {
            command.env_remove(name);
        }
    }
    command
}

/// The programs of all tests, those of long targets first.
fn build(root: &Path) -> Result<VecDeque<Program>> {
    let mut cargo = cargo(root, "--no-run");
    cargo.arg("--message-format=json-render-diagnostics");
    let mut child = cargo.stdout(Stdio::piped()).spawn()?;
    let said = child.stdout.take().context("cargo says nothing")?;
    let mut programs = Vec::new();
    for message in Message::parse_stream(BufReader::new(said)) {
        if let Message::CompilerArtifact(artifact) = message? {
            programs.extend(Program::of(artifact));
        }
    }
    let status = child.wait()?;
    if !status.success() {
        bail!("cargo could not build the tests: {status}");
    }
    let long = |program: &Program| LONG.iter().position(|&long| long == program.target);
    programs.sort_by_key(|program| long(program).unwrap_or(LONG.len()));
    Ok(programs.into())
}

/// Runs what waits, one after the other, and says what each has said once it has ended.
fn work(
    waiting: &Mutex<VecDeque<Program>>,
    failed: &Mutex<Vec<Failed>>,
    arguments: &[String],
    log: &Path,
) {
    let next = || waiting.lock().ok()?.pop_front();
    while let Some(program) = next() {
        let begin = Instant::now();
        let ended = program.run(arguments, log);
        let seconds = begin.elapsed().as_secs_f64();
        let mut out = io::stdout().lock();
        // What cannot be said any more is no reason to leave tests out.
        _ = writeln!(out, "     Ran {}, {seconds:.1} s", program.title);
        _ = File::open(log).and_then(|mut log| io::copy(&mut log, &mut out));
        let why = match ended {
            Ok(status) if status.success() => continue,
            Ok(status) => status.to_string(),
            Err(error) => format!("{error:#}"),
        };
        _ = writeln!(out, "     {}: {why}", program.title);
        if let Ok(mut failed) = failed.lock() {
            failed.push((program, why));
        }
    }
}
