//! Faults under load, and a checker of the histories that they leave.
//!
//! Three hosts, two clients and three servers of NATS run as processes of their own, as root in
//! network namespaces. A seed decides which faults come when: links are cut or slow, processes
//! stopped or killed, disks full, clocks wrong. Meanwhile clients ask entities for changes, and
//! send durable messages to them and to a group; each process writes down what it sees. After the
//! faults [the checker](checker) looks at all of it together with what the stores took.
//!
//! `cargo test` runs a few seeds, `make cluster-faults SEEDS=1000` many.

mod actors;
mod checker;
mod client;
mod history;
mod node;
mod observer;
mod plan;
mod report;
mod run;
mod world;

use std::io::Write;
use std::sync::Mutex;
use std::thread;

use crate::run::Outcome;

/// The seeds that each `cargo test` runs, at a time.
const FEW: [u64; 3] = [1, 2, 3];

/// One of the processes of a run, which this program starts itself.
#[test]
#[ignore = "a process of the other tests"]
fn process() {
    node::run();
}

#[test]
fn nothing_is_lost_or_done_twice_whatever_fails() {
    tell_what_is_missing();
    expect_good(&run_all(FEW, 3));
}

/// `SEEDS` from `FIRST` on, `JOBS` at a time; with `FAULT` only seeds that have a fault of this
/// kind.
#[test]
#[ignore = "minutes: `make cluster-faults`"]
fn many_seeds() {
    tell_what_is_missing();
    let seeds = usize::try_from(number("SEEDS", 20)).expect("as many as fit");
    let fault = variable("FAULT").map(|name| {
        plan::kind_named(&name).unwrap_or_else(|| panic!("FAULT is none of {:?}", plan::KINDS))
    });
    let seeds = (number("FIRST", 1)..)
        .filter(|seed| fault.is_none_or(|fault| plan::has(*seed, fault, world::has_namespaces())))
        .take(seeds);
    let outcomes = run_all(seeds, number("JOBS", 2));
    tell(&report::report(&outcomes));
    expect_good(&outcomes);
}

fn expect_good(outcomes: &[Outcome]) {
    let bad: Vec<_> = outcomes
        .iter()
        .filter(|outcome| outcome.kept.is_some())
        .map(|outcome| outcome.seed)
        .collect();
    assert!(bad.is_empty(), "seeds {bad:?} are bad: see above");
}

/// Runs seeds, some at a time.
fn run_all(seeds: impl IntoIterator<Item = u64, IntoIter: Send>, jobs: u64) -> Vec<Outcome> {
    let (seeds, outcomes) = (Mutex::new(seeds.into_iter()), Mutex::new(Vec::new()));
    let next = || seeds.lock().expect("no panic").next();
    thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                while let Some(seed) = next() {
                    let outcome = run::run(seed);
                    tell(&report::line(&outcome));
                    outcomes.lock().expect("no panic").push(outcome);
                }
            });
        }
    });
    outcomes.into_inner().expect("no panic")
}

fn number(name: &str, default: u64) -> u64 {
    variable(name).map_or(default, |value| value.parse().expect("a number"))
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn tell_what_is_missing() {
    if !world::has_namespaces() {
        tell(
            "NOT ROOT: there are no network namespaces, so links are NEITHER CUT NOR SLOW and no \
             disk is full; processes are killed and stopped",
        );
    }
    if world::faketime().is_none() {
        tell("libfaketime is NOT INSTALLED (package faketime): no clock jumps");
    }
}

/// Writes to the terminal, not to what the test harness keeps.
fn tell(text: &str) {
    let mut output = std::io::stderr().lock();
    writeln!(output, "{text}").expect("it can be written");
}
