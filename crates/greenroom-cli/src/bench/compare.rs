//! The command `greenroom bench compare`.

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::{Context, ensure};
use greenroom_load::compare::{self, Check, CompareError, Comparison, Outcome, Step};
use greenroom_load::plot::{self, Series};
use greenroom_load::report::progress;
use greenroom_load::run::Stop;

use super::{files, plan, signals};
use crate::args::bench::CompareArgs;
use crate::exit;

pub(super) fn run(args: &CompareArgs) -> ExitCode {
    let comparison = match comparison(args) {
        Ok(comparison) => comparison,
        Err(error) => return exit::with_message(exit::NOT_STARTED, format!("{error:#}")),
    };
    let stop = Stop::default();
    if let Err(error) = signals::stop_gently_on_signals(&stop) {
        return exit::with_message(exit::NOT_STARTED, format!("cannot catch signals: {error}"));
    }
    let compared = compare::run(&comparison, &stop, &mut |step| tell(args, step));
    let outcome = match compared {
        Ok(outcome) => outcome,
        Err(error @ (CompareError::Plan(_) | CompareError::Cores(_))) => {
            return exit::with_message(exit::NOT_STARTED, error);
        }
        Err(error @ CompareError::Interrupted) => {
            return exit::with_message(exit::INTERRUPTED, error);
        }
        Err(error) => return exit::with_message(exit::FAILED, error),
    };
    match report(args, outcome) {
        Err(error) => exit::with_message(exit::FAILED, format!("{error:#}")),
        Ok(()) if stop.is_stopped() => ExitCode::from(exit::INTERRUPTED),
        Ok(()) => ExitCode::SUCCESS,
    }
}

fn comparison(args: &CompareArgs) -> anyhow::Result<Comparison> {
    let files = [&args.json, &args.plot];
    files
        .into_iter()
        .flatten()
        .try_for_each(|file| files::can_be_written(file))?;
    ensure!(
        args.request.proxy.is_none(),
        "-X: a comparison reaches its servers directly; compare the proxy itself, as one of them"
    );
    let mut servers = args.server.clone();
    let first = servers[0].target.clone();
    let template = plan::alone(&[first], &args.load, &args.request)?;
    for server in &mut servers {
        plan::redirect(&mut server.target, &args.load, &args.request)?;
    }
    let mut comparison = Comparison::new(servers, template);
    comparison.rounds = args.rounds;
    comparison.warm_up = args.warm_up;
    comparison.server_cores.clone_from(&args.server_cores);
    comparison.load_cores.clone_from(&args.load_cores);
    comparison.start_timeout = args.start_timeout;
    if args.allow_different_answers {
        comparison.check = Check::Nothing;
    }
    Ok(comparison)
}

fn tell(args: &CompareArgs, step: &Step<'_>) {
    if args.quiet {
        return;
    }
    let line = match step {
        Step::Begins(turn) => format!("round {} of {}: {}", turn.round, turn.rounds, turn.name),
        Step::Progress(_, now) => progress::line(now),
        Step::Ended(..) => return,
    };
    // A closed standard error ends nothing.
    let _ = writeln!(io::stderr(), "{line}");
}

fn report(args: &CompareArgs, outcome: Outcome) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    compare::write_text(&mut out, &outcome)
        .and_then(|()| out.flush())
        .context("standard output")?;
    if let Some(file) = &args.json {
        let summary = outcome.summary();
        files::write_file(file, &mut |out| {
            serde_json::to_writer_pretty(&mut *out, &summary)?;
            writeln!(out)
        })?;
    }
    if let Some(file) = &args.plot {
        let plots = outcome.into_plots();
        let series: Vec<_> = plots
            .iter()
            .map(|(name, rounds)| Series::of_rounds(name, &rounds.iter().collect::<Vec<_>>()))
            .collect();
        files::write_file(file, &mut |out| {
            out.write_all(plot::svg(&series).as_bytes())
        })?;
    }
    Ok(())
}
