//! The faults of a seed.

use std::time::Duration;

use fastrand::Rng;

use crate::world::{Machine, Side};

/// The time for which clients put load on the hosts.
pub(crate) const LOAD: Duration = Duration::from_secs(7);
/// The faults of a seed begin and end within this time from the beginning of the load.
const FAULTS_WITHIN_MS: u64 = 6_500;
/// The hosts, the clients and the servers of a run.
pub(crate) const HOSTS: usize = 3;
pub(crate) const CLIENTS: usize = 2;
pub(crate) const SERVERS: usize = 3;

/// A fault. It ends after its time: links work again, processes go on or are started anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing goes over a machine's link, in one direction or both.
    Cut(Machine, Side),
    /// A machine's link is slow: what is sent waits for up to half a second.
    Slow(Machine),
    /// A machine's process is stopped, and goes on.
    Pause(Machine),
    /// A host is killed, and another one started in its place.
    Kill(usize),
    /// A server does not reach the two others, but the nodes that are connected to it.
    Split(usize),
    /// The server that leads the bucket of states is killed, and run again.
    KillLeader,
    /// The disk of a server is full; with room again, the server is killed and run again, as it
    /// does not store any more by itself.
    FillDisk(usize),
    /// The wall clock of a host jumps by so many seconds, and back.
    Jump(usize, i64),
}

/// A fault with its times, from the beginning of the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) begin: Duration,
    pub(crate) end: Duration,
    pub(crate) fault: Fault,
}

/// The names of the kinds of faults, in the order of [`kind`].
pub(crate) const KINDS: [&str; 13] = [
    "host cut off",
    "client cut off",
    "server cut off",
    "servers split",
    "slow host",
    "slow client",
    "slow server",
    "host paused",
    "server paused",
    "host killed",
    "leader killed",
    "disk full",
    "clock jump",
];

/// Returns the place of a kind of fault among [`KINDS`].
pub(crate) fn kind_named(name: &str) -> Option<usize> {
    KINDS.iter().position(|kind| *kind == name)
}

/// Returns `true` if a seed has a fault of a kind.
pub(crate) fn has(seed: u64, of: usize, has_namespaces: bool) -> bool {
    let steps = plan(seed, has_namespaces);
    steps.iter().any(|step| kind(step.fault) == of)
}

/// Returns the place of a fault's kind among [`KINDS`].
pub(crate) fn kind(fault: Fault) -> usize {
    match fault {
        Fault::Cut(Machine::Host(_), _) => 0,
        Fault::Cut(Machine::Client(_), _) => 1,
        Fault::Cut(Machine::Server(_) | Machine::Observer, _) => 2,
        Fault::Split(_) => 3,
        Fault::Slow(Machine::Host(_)) => 4,
        Fault::Slow(Machine::Client(_)) => 5,
        Fault::Slow(Machine::Server(_) | Machine::Observer) => 6,
        Fault::Pause(Machine::Host(_) | Machine::Client(_)) => 7,
        Fault::Pause(Machine::Server(_) | Machine::Observer) => 8,
        Fault::Kill(_) => 9,
        Fault::KillLeader => 10,
        Fault::FillDisk(_) => 11,
        Fault::Jump(..) => 12,
    }
}

/// Returns the lease time of a seed, in milliseconds.
pub(crate) fn lease_ms(seed: u64) -> u64 {
    Rng::with_seed(seed).u64(1_000..=2_000)
}

/// Returns the faults of a seed. One host after the other may fail or several at a time, but one
/// server at a time: two of three have to be there for what is acknowledged to be kept.
pub(crate) fn plan(seed: u64, has_namespaces: bool) -> Vec<Step> {
    let mut rng = Rng::with_seed(seed);
    let lease_ms = lease_ms(seed);
    let mut steps = Vec::new();
    for host in 0..HOSTS {
        let next = |rng: &mut Rng| of_host(rng, host, has_namespaces);
        lane(&mut rng, lease_ms, 0.45, next, &mut steps);
    }
    for client in 0..CLIENTS {
        if has_namespaces {
            let next = |rng: &mut Rng| of_client(rng, client);
            lane(&mut rng, lease_ms, 0.2, next, &mut steps);
        }
    }
    let next = |rng: &mut Rng| of_server(rng, has_namespaces);
    lane(&mut rng, lease_ms, 0.7, next, &mut steps);
    if steps.is_empty() {
        steps.push(Step {
            begin: Duration::from_secs(1),
            end: Duration::from_secs(3),
            fault: Fault::Kill(rng.usize(..HOSTS)),
        });
    }
    steps
}

/// Adds faults that follow each other, each with a probability.
fn lane(
    rng: &mut Rng,
    lease_ms: u64,
    probability: f64,
    next: impl Fn(&mut Rng) -> Fault,
    steps: &mut Vec<Step>,
) {
    let mut now = rng.u64(200..2_000);
    loop {
        let fault = next(rng);
        // A pause is longer than the lease: others take over what the host has, and it wakes up.
        let lasts = match fault {
            Fault::Pause(Machine::Host(_)) => lease_ms + rng.u64(300..1_500),
            _ => rng.u64(400..3_500),
        };
        if now + lasts > FAULTS_WITHIN_MS {
            return;
        }
        if rng.f64() < probability {
            steps.push(Step {
                begin: Duration::from_millis(now),
                end: Duration::from_millis(now + lasts),
                fault,
            });
        }
        now += lasts + rng.u64(200..1_500);
    }
}

fn side(rng: &mut Rng) -> Side {
    [Side::From, Side::To, Side::Both][rng.usize(..3)]
}

fn of_host(rng: &mut Rng, host: usize, has_namespaces: bool) -> Fault {
    let machine = Machine::Host(host);
    let jumps = [-86_400, -3_600, -5, 5, 3_600, 86_400];
    match rng.u32(..if has_namespaces { 10 } else { 5 }) {
        0..2 => Fault::Pause(machine),
        2..4 => Fault::Kill(host),
        4 => Fault::Jump(host, jumps[rng.usize(..jumps.len())]),
        5..8 => Fault::Cut(machine, side(rng)),
        _ => Fault::Slow(machine),
    }
}

fn of_client(rng: &mut Rng, client: usize) -> Fault {
    let machine = Machine::Client(client);
    if rng.bool() {
        Fault::Cut(machine, side(rng))
    } else {
        Fault::Slow(machine)
    }
}

fn of_server(rng: &mut Rng, has_namespaces: bool) -> Fault {
    let server = rng.usize(..SERVERS);
    let machine = Machine::Server(server);
    match rng.u32(..if has_namespaces { 9 } else { 4 }) {
        0..2 => Fault::KillLeader,
        2..4 => Fault::Pause(machine),
        4 => Fault::FillDisk(server),
        5 => Fault::Slow(machine),
        6 => Fault::Split(server),
        _ => Fault::Cut(machine, side(rng)),
    }
}
