//! One seed: its faults under load, and what the checker says.

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use crate::checker::{Counts, Violation, check};
use crate::history::Log;
use crate::node::Role;
use crate::plan::{CLIENTS, Fault, HOSTS, KINDS, LOAD, SERVERS, Step, kind, lease_ms, plan};
use crate::world::{Machine, World, faketime, has_namespaces};

/// The longest that the servers take until they are ready.
const PREPARED_WITHIN: Duration = Duration::from_secs(90);
/// The longest that clients go on after the load: the tries of one durable message, 3 s each, and
/// a machine that has too much to do.
const CLIENTS_WITHIN: Duration = Duration::from_secs(90);
/// The longest until all is handled after the faults. A message that is handed on may be waited
/// for 2 min, and is put off for 1 min at most.
const HANDLED_WITHIN: Duration = Duration::from_mins(4);
/// The longest that the stores are read.
const READ_WITHIN: Duration = Duration::from_mins(1);
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The outcome of a seed.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) seed: u64,
    pub(crate) faults: [u64; KINDS.len()],
    pub(crate) counts: Counts,
    pub(crate) violations: Vec<Violation>,
    /// The fault of the run itself.
    pub(crate) failure: Option<String>,
    /// From the end of the faults until all was handled and read.
    pub(crate) recovery: Duration,
    pub(crate) took: Duration,
    /// The logs, if something is wrong.
    pub(crate) kept: Option<PathBuf>,
}

/// Runs a seed.
pub(crate) fn run(seed: u64) -> Outcome {
    let begin = Instant::now();
    let mut steps = plan(seed, has_namespaces());
    steps.retain(|step| !matches!(step.fault, Fault::Jump(..)) || faketime().is_some());
    let mut world = World::start(&format!("s{seed}"), lease_ms(seed));
    let mut recovery = Duration::ZERO;
    let ran = load(&mut world, seed, &steps).and_then(|()| {
        let healed = Instant::now();
        let observed = observe(&mut world);
        recovery = healed.elapsed();
        observed
    });
    let (counts, violations) = check(&logs(&world));
    let mut faults = [0; KINDS.len()];
    for step in &steps {
        faults[kind(step.fault)] += 1;
    }
    let failure = ran.err();
    let is_bad = failure.is_some() || !violations.is_empty();
    let kept = is_bad.then(|| world.keep());
    if let Some(kept) = &kept {
        let text = format!("{steps:#?}\n{failure:?}\n{violations:#?}\n{counts:#?}\n");
        fs::write(kept.join("outcome"), text).expect("there is room");
    }
    Outcome {
        seed,
        faults,
        counts,
        violations,
        failure,
        recovery,
        took: begin.elapsed(),
        kept,
    }
}

/// Starts the nodes, and lets the faults come while the clients are at work.
fn load(world: &mut World, seed: u64, steps: &[Step]) -> Result<(), String> {
    world.run(Machine::Observer, Role::Prepare);
    await_end(world, Machine::Observer, PREPARED_WITHIN)?;
    for host in 0..HOSTS {
        world.run_host(host, has_clock(steps, host));
    }
    for host in 0..HOSTS {
        await_joined(world, Machine::Host(host))?;
    }
    for client in 0..CLIENTS {
        let load_ms = u64::try_from(LOAD.as_millis()).unwrap_or(u64::MAX);
        let number = client as u64 + 1;
        let role = Role::Client {
            seed,
            number,
            load_ms,
        };
        world.run(Machine::Client(client), role);
    }
    for client in 0..CLIENTS {
        await_joined(world, Machine::Client(client))?;
    }
    inject(world, steps);
    for client in 0..CLIENTS {
        await_end(world, Machine::Client(client), LOAD + CLIENTS_WITHIN)?;
    }
    Ok(())
}

/// Waits until all is handled, ends the hosts, and reads the stores.
fn observe(world: &mut World) -> Result<(), String> {
    let within_ms = u64::try_from(HANDLED_WITHIN.as_millis()).unwrap_or(u64::MAX);
    world.run(Machine::Observer, Role::Observe { within_ms });
    let observed = await_end(world, Machine::Observer, HANDLED_WITHIN + READ_WITHIN);
    for host in 0..HOSTS {
        world.kill(Machine::Host(host));
    }
    world.run(Machine::Observer, Role::Read);
    observed.and(await_end(world, Machine::Observer, READ_WITHIN))
}

/// Waits until what runs on a machine has joined the cluster.
fn await_joined(world: &World, machine: Machine) -> Result<(), String> {
    let deadline = Instant::now() + PREPARED_WITHIN;
    while world.log(machine).events.is_empty() {
        if Instant::now() >= deadline {
            return Err(format!(
                "{machine:?} did not join within {PREPARED_WITHIN:?}"
            ));
        }
        thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}

fn await_end(world: &mut World, machine: Machine, within: Duration) -> Result<(), String> {
    let deadline = Instant::now() + within;
    loop {
        match world.has_ended(machine) {
            Some(true) => return Ok(()),
            Some(false) => return Err(format!("{machine:?} failed")),
            None if Instant::now() >= deadline => {
                world.kill(machine);
                return Err(format!("{machine:?} did not end within {within:?}"));
            }
            None => thread::sleep(POLL_INTERVAL),
        }
    }
}

fn logs(world: &World) -> Vec<Log> {
    let files = fs::read_dir(world.directory()).expect("it is there");
    let mut files: Vec<_> = files
        .map(|file| file.expect("it is there").path())
        .collect();
    files.retain(|file| {
        file.extension()
            .is_some_and(|extension| extension == "history")
    });
    files.sort();
    files.iter().map(|file| Log::read(file)).collect()
}

fn has_clock(steps: &[Step], host: usize) -> bool {
    let mut faults = steps.iter().map(|step| step.fault);
    faults.any(|fault| matches!(fault, Fault::Jump(of, _) if of == host))
}

/// Begins and ends each fault at its time.
fn inject(world: &mut World, steps: &[Step]) {
    let begin = Instant::now();
    let mut times: Vec<_> = steps
        .iter()
        .enumerate()
        .flat_map(|(step, of)| [(of.begin, step, true), (of.end, step, false)])
        .collect();
    times.sort_unstable();
    let mut killed = vec![None; steps.len()];
    for (at, step, is_begin) in times {
        // The time of a fault is what a seed says.
        thread::sleep((begin + at).saturating_duration_since(Instant::now()));
        let fault = steps[step].fault;
        if is_begin {
            killed[step] = begin_fault(world, fault);
        } else {
            let clock = matches!(fault, Fault::Kill(host) if has_clock(steps, host));
            end_fault(world, fault, killed[step], clock);
        }
    }
}

/// Returns the server that was killed as the leader.
fn begin_fault(world: &mut World, fault: Fault) -> Option<usize> {
    match fault {
        Fault::Cut(machine, side) => world.cut(machine, side),
        Fault::Slow(machine) => world.slow(machine),
        Fault::Pause(machine) => world.set_paused(machine, true),
        Fault::Kill(host) => world.kill(Machine::Host(host)),
        Fault::Split(server) => world.set_split(server, true),
        Fault::FillDisk(server) => world.fill(server),
        Fault::Jump(host, seconds) => world.set_clock(host, seconds),
        Fault::KillLeader => {
            // While there is an election, any.
            let leader = world.leader().unwrap_or(fastrand::usize(..SERVERS));
            world.kill(Machine::Server(leader));
            return Some(leader);
        }
    }
    None
}

fn end_fault(world: &mut World, fault: Fault, killed: Option<usize>, has_clock: bool) {
    match fault {
        Fault::Cut(machine, _) | Fault::Slow(machine) => world.mend(machine),
        Fault::Pause(machine) => world.set_paused(machine, false),
        Fault::Kill(host) => world.run_host(host, has_clock),
        Fault::Split(server) => world.set_split(server, false),
        Fault::FillDisk(server) => {
            world.empty(server);
            world.kill(Machine::Server(server));
            world.run_server(server);
        }
        Fault::Jump(host, _) => world.set_clock(host, 0),
        Fault::KillLeader => world.run_server(killed.expect("one was killed")),
    }
}
