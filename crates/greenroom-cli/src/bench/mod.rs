//! `greenroom bench`: the load generator.

mod compare;
mod files;
mod plan;
mod progress;
mod signals;

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::Context;
use greenroom_load::plan::{Place, Plan, Protocol};
use greenroom_load::report::text::{self, TextOptions};
use greenroom_load::run::{Measurement, Stop, StreamMeasurement, run as run_plan};
use greenroom_load::verdict::Processes;

use crate::args::bench::{BenchArgs, BenchCommand, OutputArgs};
use crate::exit;
use progress::Progress;

pub(crate) fn run(args: &BenchArgs) -> ExitCode {
    greenroom::raise_descriptor_limit();
    if let Some(BenchCommand::Compare(args)) = &args.command {
        return compare::run(args);
    }
    let plan = match plan::plan(args).and_then(|plan| files::check(&args.output).map(|()| plan)) {
        Ok(plan) => plan,
        Err(error) => return exit::with_message(exit::NOT_STARTED, format!("{error:#}")),
    };
    match measure(args, &plan) {
        Ok(measurement) => report(args, &measurement),
        Err(error) => exit::with_message(exit::NOT_STARTED, format!("{error:#}")),
    }
}

fn measure(args: &BenchArgs, plan: &Plan) -> anyhow::Result<Measurement> {
    let server = server(args, plan)?;
    let stop = Stop::default();
    signals::stop_on_signals(&stop).context("cannot catch signals")?;
    greet(args, plan);
    let mut progress = Progress::new(&args.output, plan);
    let measured = run_plan(plan, server, &stop, &mut |now| progress.show(now));
    progress.finish();
    Ok(measured?)
}

fn server(args: &BenchArgs, plan: &Plan) -> anyhow::Result<Option<Processes>> {
    let Some(pid) = args.server_pid else {
        let targets = plan.streams.iter().flat_map(|stream| &stream.targets);
        return Ok(Processes::listening(targets));
    };
    let processes = Processes::of(pid.get());
    let processes =
        processes.with_context(|| format!("--server-pid: there is no process {pid}"))?;
    Ok(Some(processes))
}

/// Prints a greeting like ab's. Standard output may be closed, which ends nothing.
fn greet(args: &BenchArgs, plan: &Plan) {
    let stream = &plan.streams[0];
    let host = stream.targets[0].host();
    let mut out = io::stdout().lock();
    let _ = writeln!(
        out,
        "This is greenroom bench, version {}",
        env!("CARGO_PKG_VERSION")
    );
    let through = match &args.request.proxy {
        Some(Place::Tcp { host, port }) => format!(" [through {host}:{port}]"),
        _ => String::new(),
    };
    let _ = writeln!(out, "\nBenchmarking {host}{through} (be patient)...\n");
    if args.output.verbosity >= 3 {
        let request = stream.request.encode(&stream.targets[0], stream.keep_alive);
        let (what, sent) = match stream.protocol {
            Protocol::Http1 => ("Request", &*request),
            Protocol::Http2 => ("Request, in the form of HTTP/1.1", &*request),
            Protocol::WebSocket => ("Message", &*stream.request.body),
        };
        let sent = String::from_utf8_lossy(sent);
        let _ = writeln!(out, "---\n{what}:\n{sent}\n---");
    }
    let _ = out.flush();
}

fn report(args: &BenchArgs, measurement: &Measurement) -> ExitCode {
    let printed = print(&args.output, measurement).context("standard output");
    // The files are written even if standard output is closed.
    let written = files::write(args, measurement);
    if let Err(error) = printed.and(written) {
        return exit::with_message(exit::FAILED, format!("{error:#}"));
    }
    let main = &measurement.streams[0];
    let broken: Vec<_> = args
        .output
        .fail_if
        .iter()
        .filter_map(|gate| gate.broken_by(main))
        .collect();
    for gate in &broken {
        exit::complain(format!("--fail-if came true: {gate}"));
    }
    let missed = measurement
        .streams
        .iter()
        .any(StreamMeasurement::missed_its_rate);
    if measurement.interrupted {
        ExitCode::from(exit::INTERRUPTED)
    } else if measurement.gave_up || main.tally.responses() == 0 {
        ExitCode::from(exit::FAILED)
    } else if missed || !broken.is_empty() {
        ExitCode::from(exit::GATE)
    } else {
        ExitCode::SUCCESS
    }
}

fn print(args: &OutputArgs, measurement: &Measurement) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if let Some(first) = measurement.streams[0]
        .first
        .as_ref()
        .filter(|_| args.verbosity >= 2)
    {
        writeln!(
            out,
            "---\nFirst response:\n{}",
            String::from_utf8_lossy(&first.head).trim_end()
        )?;
        if args.verbosity >= 4 {
            writeln!(out, "\n{}", String::from_utf8_lossy(&first.body))?;
        }
        writeln!(out, "---\n")?;
    }
    let options = TextOptions {
        without_deviation: args.no_deviation,
        without_percentages: args.no_percentages,
    };
    text::write(&mut out, measurement, &options)?;
    out.flush()
}
