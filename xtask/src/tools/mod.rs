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
use std::path::PathBuf;
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

/// The steps, in the order in which they depend on each other.
const STEPS: [Step; 9] = [
    Step {
        name: "apt",
        run: apt::install,
    },
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
    let is_known = |name: &&String| STEPS.iter().any(|step| step.name == **name);
    if let Some(unknown) = names.iter().find(|name| !is_known(name)) {
        let known: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
        bail!("{unknown} is no step; there are {}", known.join(", "));
    }
    let is_meant = |step: &&Step| names.is_empty() || names.iter().any(|name| name == step.name);
    run_steps(STEPS.iter().filter(is_meant))
}

/// Installs the servers that benchmarks measure beside ours.
pub(crate) fn run_peers() -> Result<()> {
    run_steps([&PEERS])
}

/// Installs what makes and tries the Debian package and the image.
pub(crate) fn run_packagers() -> Result<()> {
    run_steps([&PACKAGERS, &KUBERNETES, &PEBBLE])
}

/// Installs a program that cargo builds unless it is there, and says where.
pub(crate) fn cargo_tool(name: &str) -> Result<PathBuf> {
    cargo::path(&Root::open()?, name)
}

fn run_steps<'a>(steps: impl IntoIterator<Item = &'a Step>) -> Result<()> {
    let root = Root::open()?;
    let mut failed = Vec::new();
    for step in steps {
        let begin = Instant::now();
        let outcome = (step.run)(&root);
        report(step.name, &outcome, begin)?;
        if outcome.is_err() {
            failed.push(step.name);
        }
    }
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
