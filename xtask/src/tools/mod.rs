//! `cargo xtask tools`: installs the foreign programs that `make test` and `make lab` use.
//!
//! Everything but the distribution's packages goes to `target/tools`, which git ignores and
//! `cargo clean` removes:
//!
//! | directory           | holds                                       | pinned in |
//! |---------------------|---------------------------------------------|-----------------------|
//! | `bin`               | h2spec, built by Go                         | `pins/h2spec/` |
//! | `ferretdb`          | `FerretDB`, built by Go                     | `pins/ferretdb/` |
//! | `python`            | Python 3: HTTP clients, a mail sink         | `pins/python.txt` |
//! | `node`              | undici, drivers of browsers, axe-core       | `pins/node/` |
//! | `nats`              | nats-server, built by Go                    | `pins/nats/` |
//! | `pebble`            | Pebble, an ACME authority with DNS, by Go   | `pins/pebble/` |
//! | `otelcol`           | the OpenTelemetry Collector, built by Go    | `pins/otelcol/` |
//! | `autobahn`          | Python 2.7: Autobahn's test suite           | `pins/autobahn.txt` |
//! | `kubernetes`        | what checks manifests, Compose; for packages | `pins/kubernetes.txt` |
//! | `mdbook`, `cargo-*` | makers of book and packages, by cargo       | `cargo.rs` |
//! | `stamps`            | for each of them, the pins it was made from | |
//!
//! A step whose stamp equals its pins does nothing, so a second run ends at once.

mod apt;
mod autobahn;
mod cargo;
mod ferretdb;
mod go;
mod h2spec;
mod nats;
mod node;
mod otelcol;
mod pebble;
mod process;
mod python;
mod root;

use std::io::{self, Write};
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::thread;
use std::time::Instant;

use anyhow::{Result, bail};

use root::Root;

/// The outcome of a step.
enum Outcome {
    Installed,
    Present,
    /// The machine lacks something that no registry has; the tests that depend on it are skipped.
    Skipped(&'static str),
}

struct Step {
    name: &'static str,
    run: fn(&Root) -> Result<Outcome>,
}

/// The step that only benchmarks need.
const PEERS: Step = Step {
    name: "peers",
    run: apt::install_peers,
};

/// The step that only packages need.
const PACKAGERS: Step = Step {
    name: "packagers",
    run: apt::install_packagers,
};

const KUBERNETES: Step = Step {
    name: "kubernetes",
    run: python::install_kubernetes,
};

const PEBBLE: Step = Step {
    name: "pebble",
    run: pebble::install,
};

/// The first step: the others use what it installs.
const APT: Step = Step {
    name: "apt",
    run: apt::install,
};

/// The steps that have Go build something, which takes all cores.
const BUILT_BY_GO: [Step; 5] = [
    Step {
        name: "h2spec",
        run: h2spec::install,
    },
    Step {
        name: "ferretdb",
        run: ferretdb::install,
    },
    Step {
        name: "nats",
        run: nats::install,
    },
    PEBBLE,
    Step {
        name: "otelcol",
        run: otelcol::install,
    },
];

/// The steps that mostly wait, for registries or for one compiler, in the order in which they
/// depend on each other.
const FETCHED: [Step; 3] = [
    Step {
        name: "python",
        run: python::install,
    },
    Step {
        name: "node",
        run: node::install,
    },
    Step {
        name: "autobahn",
        run: autobahn::install,
    },
];

/// Runs the steps of these names, or every step; also after one has failed, so that one run names
/// all that is missing.
pub(crate) fn run(names: &[String]) -> Result<()> {
    let steps = || [APT].into_iter().chain(BUILT_BY_GO).chain(FETCHED);
    if let Some(unknown) = names
        .iter()
        .find(|name| steps().all(|step| step.name != **name))
    {
        let known: Vec<&str> = steps().map(|step| step.name).collect();
        bail!("{unknown} is no step; there are {}", known.join(", "));
    }
    let is_meant = |step: &&Step| names.is_empty() || names.iter().any(|name| name == step.name);
    let root = Root::open()?;
    let mut failed = run_in_turn(&root, [&APT].into_iter().filter(is_meant))?;
    let others = thread::scope(|scope| {
        let built = scope.spawn(|| run_in_turn(&root, BUILT_BY_GO.iter().filter(is_meant)));
        let fetched = run_in_turn(&root, FETCHED.iter().filter(is_meant));
        let built = built.join().unwrap_or_else(|panic| resume_unwind(panic));
        anyhow::Ok([built?, fetched?].concat())
    })?;
    failed.extend(others);
    succeed_without(&failed)
}

/// Installs the servers that benchmarks measure beside ours.
pub(crate) fn run_peers() -> Result<()> {
    run_steps(&[PEERS])
}

/// Installs what makes and tries the Debian package and the image.
pub(crate) fn run_packagers() -> Result<()> {
    run_steps(&[PACKAGERS, KUBERNETES, PEBBLE])
}

/// Installs a program that cargo builds unless it is there, and says where.
pub(crate) fn cargo_tool(name: &str) -> Result<PathBuf> {
    cargo::path(&Root::open()?, name)
}

fn run_steps(steps: &[Step]) -> Result<()> {
    succeed_without(&run_in_turn(&Root::open()?, steps)?)
}

/// Runs the steps one after another, and returns the names of those that failed.
fn run_in_turn<'a>(
    root: &Root,
    steps: impl IntoIterator<Item = &'a Step>,
) -> Result<Vec<&'static str>> {
    let mut failed = Vec::new();
    for step in steps {
        let begin = Instant::now();
        let outcome = (step.run)(root);
        report(step.name, &outcome, begin)?;
        if outcome.is_err() {
            failed.push(step.name);
        }
    }
    Ok(failed)
}

fn succeed_without(failed: &[&str]) -> Result<()> {
    if !failed.is_empty() {
        bail!("not installed: {}", failed.join(", "));
    }
    Ok(())
}

fn report(name: &str, outcome: &Result<Outcome>, begin: Instant) -> io::Result<()> {
    let seconds = begin.elapsed().as_secs_f64();
    let text = match outcome {
        Ok(Outcome::Installed) => format!("installed in {seconds:.1} s"),
        Ok(Outcome::Present) => "present".to_owned(),
        Ok(Outcome::Skipped(reason)) => format!("SKIPPED: {reason}"),
        Err(error) => format!("FAILED: {error:#}"),
    };
    writeln!(io::stdout(), "{name:<10} {text}")
}
