//! Output files of a run.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::{Context, ensure};
use greenroom_load::plot::{self, Series};
use greenroom_load::report::{csv, gnuplot, hdr, json, percentages};
use greenroom_load::run::Measurement;

use crate::args::bench::{BenchArgs, OutputArgs};

/// Fails before the run if a file cannot be written after it.
pub(super) fn check(args: &OutputArgs) -> anyhow::Result<()> {
    let files = [
        &args.json,
        &args.csv,
        &args.percentages,
        &args.gnuplot,
        &args.hdr,
        &args.plot,
        &args.html,
    ];
    files
        .into_iter()
        .flatten()
        .try_for_each(|file| can_be_written(file))
}

/// Fails if a file cannot be created later because its directory is missing.
pub(super) fn can_be_written(file: &Path) -> anyhow::Result<()> {
    let directory = file
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new("."));
    ensure!(
        !file.is_dir(),
        "cannot write {}: it is a directory",
        file.display()
    );
    ensure!(
        directory.is_dir(),
        "cannot write {}: {} is no directory in which it could be made",
        file.display(),
        directory.display()
    );
    Ok(())
}

/// Writes each requested file. The first error is returned after the others were tried.
pub(super) fn write(args: &BenchArgs, measurement: &Measurement) -> anyhow::Result<()> {
    type Writer<'a> = &'a dyn Fn(&mut dyn Write, &Measurement) -> io::Result<()>;
    let secrets = args.request.secrets();
    let write_page = |out: &mut dyn Write, measurement: &Measurement| {
        write_page(out, measurement, &command(&secrets))
    };
    let args = &args.output;
    let writers: [(&Option<_>, Writer<'_>); 7] = [
        (&args.json, &json::write),
        (&args.csv, &csv::write),
        (&args.percentages, &percentages::write),
        (&args.gnuplot, &gnuplot::write),
        (&args.hdr, &hdr::write),
        (&args.plot, &write_plot),
        (&args.html, &write_page),
    ];
    let written = writers.iter().filter_map(|(file, writer)| {
        let file = file.as_ref()?;
        Some(write_file(file, &mut |out| writer(out, measurement)))
    });
    written.fold(Ok(()), Result::and)
}

/// Writes one file.
pub(super) fn write_file(
    file: &Path,
    write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
) -> anyhow::Result<()> {
    let written = File::create(file).map(BufWriter::new).and_then(|mut out| {
        write(&mut out)?;
        out.flush()
    });
    written.with_context(|| format!("cannot write {}", file.display()))
}

fn write_plot(out: &mut dyn Write, measurement: &Measurement) -> io::Result<()> {
    let series: Vec<_> = measurement.streams.iter().map(Series::of).collect();
    out.write_all(plot::svg(&series).as_bytes())
}

/// Returns the command line for others to read: without secrets.
fn command(secrets: &[&str]) -> String {
    let words: Vec<_> = std::env::args_os()
        .map(|word| without(secrets, word.to_string_lossy().into_owned()))
        .collect();
    shlex::try_join(words.iter().map(String::as_str)).unwrap_or_default()
}

fn without(secrets: &[&str], word: String) -> String {
    let secrets = secrets.iter().filter(|secret| !secret.is_empty());
    secrets.fold(word, |word, secret| word.replace(secret, "***"))
}

fn write_page(out: &mut dyn Write, measurement: &Measurement, command: &str) -> io::Result<()> {
    let began = humantime::format_rfc3339_seconds(measurement.started).to_string();
    let kernel = rustix::system::uname();
    let kernel = kernel.release().to_string_lossy().into_owned();
    let cores = std::thread::available_parallelism()
        .map_or_else(|_| "unknown".to_owned(), |cores| cores.to_string());
    let facts = [
        ("Began", began.as_str()),
        ("Linux", kernel.as_str()),
        ("Cores for this program", cores.as_str()),
        ("greenroom", env!("CARGO_PKG_VERSION")),
    ];
    let page = plot::html(measurement, command, &facts).map_err(io::Error::other)?;
    out.write_all(page.as_bytes())
}
