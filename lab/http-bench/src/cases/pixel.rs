//! The ad blocker's pixel, by the `ab` run that its author published.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, ensure};
use bench_kit::rounds::{find, samples};
use bench_kit::tools::{Ab, is_installed};
use bench_kit::{Report, Verdict, cell, lab_directory, table};

use super::Context;
use super::contestant::{Contestant, present};

const REQUESTS: u64 = 1_500;
const CONCURRENCY: u32 = 500;
const OURS: &str = "greenroom serve";
const PERL: &str = "Perl stand-in";
const GO: &str = "Go stand-in";
const PATH: &str = "/pixel.gif";

pub(crate) fn run(context: &Context) -> anyhow::Result<Report> {
    let mut contestants = present(vec![Contestant::demo(PATH)], context);
    let mut notes = vec![
        format!(
            "medians of {} rounds (least–most) of `ab -n {REQUESTS} -c {CONCURRENCY}`, \
             99 % in ms",
            context.rounds
        ),
        "published by the author, on another machine: Perl 23 ms, Go 101 ms".to_owned(),
        "the stand-ins are our own: single-process Perl with blocking accept, and net/http on \
         one core"
            .to_owned(),
    ];
    contestants.extend(perl_stand_in(&mut notes));
    contestants.extend(go_stand_in(&mut notes)?);
    let rows = context.interleave("pixel", &contestants, |contestant| {
        measure(contestant, context)
    })?;
    let mut out = table(["server", "99 % ms"]);
    for row in &rows {
        out.add_row([row.name.clone(), cell(row.spread(|ms| *ms), 0)]);
    }
    let median = |name| {
        find(&rows, name)
            .and_then(|row| row.spread(|ms| *ms))
            .map(|ms| ms.median)
    };
    let against = |name| {
        Some(Verdict::at_most(
            format!("{OURS} 99 % beside the {name}"),
            median(OURS),
            median(name)?,
            " ms",
        ))
    };
    Ok(Report {
        case: "pixel",
        title: "the 43-byte GIF, one request per connection".to_owned(),
        notes,
        table: out.to_string(),
        verdicts: [PERL, GO].into_iter().filter_map(against).collect(),
        samples: samples(&rows),
    })
}

fn measure(contestant: &Contestant, context: &Context) -> anyhow::Result<f64> {
    let server = contestant.launch(context)?.start()?;
    let url = server.url(contestant.path);
    let report = Ab::new(REQUESTS, CONCURRENCY).run(&url)?;
    Ok(report.p99_ms.into())
}

fn perl_stand_in(notes: &mut Vec<String>) -> Option<Contestant> {
    if !is_installed("perl") {
        notes.push("no perl here: its stand-in was left out".to_owned());
        return None;
    }
    let script = stand_ins().join("pixel.pl");
    Some(
        Contestant::at("perl", PATH)
            .arguments([script.display().to_string()])
            .named(PERL),
    )
}

fn go_stand_in(notes: &mut Vec<String>) -> anyhow::Result<Option<Contestant>> {
    if !is_installed("go") {
        notes.push("no go here: its stand-in was left out".to_owned());
        return Ok(None);
    }
    let binary = std::env::current_exe()
        .context("where this program is")?
        .with_file_name("pixel-go");
    let status = Command::new("go")
        .current_dir(stand_ins().join("pixel-go"))
        .args(["build", "-o"])
        .arg(&binary)
        .status()
        .context("cannot run go")?;
    ensure!(status.success(), "go build of the stand-in: {status}");
    Ok(Some(Contestant::at(binary, PATH).named(GO)))
}

fn stand_ins() -> PathBuf {
    lab_directory().join("http-bench/standins")
}
