//! The machines of a run: namespaces of network and mounts, a bridge between them, and the
//! processes in them. Without root there are the processes only, on the loopback.
//!
//! A namespace has no name: it is that of a process that sleeps in it, and which ends with this
//! thread, however that ends. So nothing is left behind.

mod holder;
mod servers;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, geteuid, kill_process};
use tempfile::TempDir;

use self::holder::Holder;
use self::servers::Ports;
use crate::history::Log;
use crate::node::{self, Node, Role};
use crate::plan::{CLIENTS, HOSTS, SERVERS};

/// A token bucket that no packet fits into.
const NOTHING: [&str; 7] = ["tbf", "rate", "8kbit", "burst", "10", "limit", "10"];
/// A link on which the load of a run waits in the queue for up to half a second.
const LITTLE: [&str; 7] = [
    "tbf", "rate", "150kbit", "burst", "3000", "latency", "500ms",
];

/// A machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Machine {
    Host(usize),
    Client(usize),
    Server(usize),
    /// The one that is always there: the bridge itself.
    Observer,
}

/// A direction of a machine's link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    From,
    To,
    Both,
}

/// The machines of one run, and what runs there.
pub(crate) struct World {
    directory: TempDir,
    /// `None` without namespaces.
    holders: Option<BTreeMap<Machine, Holder>>,
    ports: [Ports; SERVERS],
    processes: BTreeMap<Machine, Child>,
    prefix: String,
    lease_ms: u64,
    /// The histories of the processes that were started last.
    histories: BTreeMap<Machine, PathBuf>,
    /// The processes that were started, to name their logs.
    started: usize,
}

/// Returns `true` if this user can make namespaces.
pub(crate) fn has_namespaces() -> bool {
    geteuid().is_root()
}

fn machines() -> impl Iterator<Item = Machine> {
    let hosts = (0..HOSTS).map(Machine::Host);
    let clients = (0..CLIENTS).map(Machine::Client);
    let servers = (0..SERVERS).map(Machine::Server);
    hosts.chain(clients).chain(servers)
}

impl Machine {
    /// Returns the last number of its address.
    fn number(self) -> usize {
        match self {
            Self::Observer => 1,
            Self::Server(server) => 10 + server,
            Self::Host(host) => 20 + host,
            Self::Client(client) => 30 + client,
        }
    }

    fn link(self) -> String {
        format!("v{}", self.number())
    }
}

impl World {
    /// Makes the machines, and runs the servers.
    pub(crate) fn start(prefix: &str, lease_ms: u64) -> Self {
        let holders = has_namespaces().then(make);
        let mut world = Self {
            directory: TempDir::with_prefix("greenroom-faults-").expect("a directory"),
            ports: std::array::from_fn(|_| Ports::new(holders.is_some())),
            holders,
            processes: BTreeMap::new(),
            histories: BTreeMap::new(),
            prefix: prefix.to_owned(),
            lease_ms,
            started: 0,
        };
        for server in 0..SERVERS {
            world.prepare_server(server);
            world.run_server(server);
        }
        world
    }

    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Keeps the directory with the logs.
    pub(crate) fn keep(&mut self) -> PathBuf {
        self.directory.disable_cleanup(true);
        self.directory.path().to_owned()
    }

    /// Runs this program on a machine with a role.
    pub(crate) fn run(&mut self, machine: Machine, role: Role) {
        self.run_with(machine, role, &[]);
    }

    /// Runs a host whose wall clock is what its [clock](Self::set_clock) says.
    pub(crate) fn run_host(&mut self, host: usize, has_clock: bool) {
        let mut variables = Vec::new();
        if has_clock && let Some(library) = faketime() {
            let clock = self.clock(host);
            fs::write(&clock, "+0").expect("there is room");
            variables = vec![
                format!("LD_PRELOAD={}", library.display()),
                format!("FAKETIME_TIMESTAMP_FILE={}", clock.display()),
                "FAKETIME_CACHE_DURATION=1".to_owned(),
                "FAKETIME_DONT_FAKE_MONOTONIC=1".to_owned(),
                "DONT_FAKE_MONOTONIC=1".to_owned(),
            ];
        }
        self.run_with(Machine::Host(host), Role::Host, &variables);
    }

    /// Sets the wall clock of a host to so many seconds from the true time.
    pub(crate) fn set_clock(&self, host: usize, seconds: i64) {
        fs::write(self.clock(host), format!("{seconds:+}")).expect("there is room");
    }

    fn clock(&self, host: usize) -> PathBuf {
        self.directory().join(format!("clock{host}"))
    }

    fn run_with(&mut self, machine: Machine, role: Role, variables: &[String]) {
        self.started += 1;
        let name = format!("{:02}-{}", self.started, machine.link());
        let log = self.directory().join(format!("{name}.history"));
        self.histories.insert(machine, log.clone());
        let node = Node {
            role,
            servers: self.urls(),
            prefix: self.prefix.clone(),
            lease_ms: self.lease_ms,
            log,
        };
        let node = serde_json::to_string(&node).expect("it is JSON");
        let program = std::env::current_exe().expect("it runs");
        let mut command = self.on(machine, "env");
        command
            .args(variables)
            .arg(format!("{}={node}", node::VARIABLE))
            .arg(program)
            .args(["--exact", "--ignored", "--nocapture", "process"]);
        self.spawn(machine, &name, command);
    }

    fn spawn(&mut self, machine: Machine, name: &str, mut command: Command) {
        let log = self.directory().join(format!("{name}.log"));
        let log = File::create(log).expect("the directory is there");
        let output = log.try_clone().expect("a descriptor");
        let process = command.stdin(Stdio::null()).stdout(output).stderr(log);
        let process = process.spawn().expect("setpriv of util-linux");
        self.processes.insert(machine, process);
    }

    /// Returns a command that runs on a machine, and ends with this thread.
    fn on(&self, machine: Machine, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]);
        if let Some(holders) = &self.holders {
            command.args(holders[&machine].enter());
        }
        command.arg(program);
        command
    }

    /// Returns the history of what was started last on a machine, as far as it has come.
    pub(crate) fn log(&self, machine: Machine) -> Log {
        self.histories
            .get(&machine)
            .map(|history| Log::read(history))
            .unwrap_or_default()
    }

    /// Returns whether what runs on a machine ended well; `None` if it has not ended.
    pub(crate) fn has_ended(&mut self, machine: Machine) -> Option<bool> {
        let process = self.processes.get_mut(&machine)?;
        let status = process.try_wait().expect("it is our child")?;
        self.processes.remove(&machine);
        Some(status.success())
    }

    /// Kills what runs on a machine, without a word.
    pub(crate) fn kill(&mut self, machine: Machine) {
        if let Some(mut process) = self.processes.remove(&machine) {
            // It may have ended by itself.
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// Stops what runs on a machine, or lets it go on.
    pub(crate) fn set_paused(&self, machine: Machine, is_paused: bool) {
        let Some(process) = self.processes.get(&machine) else {
            return;
        };
        let signal = if is_paused {
            Signal::STOP
        } else {
            Signal::CONT
        };
        // It may have ended by itself; it is waited for later, so that the number is its own.
        let _ = kill_process(Pid::from_child(process), signal);
    }

    pub(crate) fn cut(&self, machine: Machine, side: Side) {
        self.shape(machine, side, &NOTHING);
    }

    pub(crate) fn slow(&self, machine: Machine) {
        self.shape(machine, Side::Both, &LITTLE);
    }

    fn shape(&self, machine: Machine, side: Side, queue: &[&str]) {
        let replace = |on: Machine, device: &str| {
            let mut command = self.on(on, "tc");
            command.args(["qdisc", "replace", "dev", device, "root"]);
            expect_success(command.args(queue));
        };
        if side != Side::To {
            replace(machine, "eth0");
        }
        if side != Side::From {
            replace(Machine::Observer, &machine.link());
        }
    }

    /// Lets a machine's link work again.
    pub(crate) fn mend(&self, machine: Machine) {
        let ends = [
            (machine, "eth0".to_owned()),
            (Machine::Observer, machine.link()),
        ];
        for (on, device) in ends {
            let mut command = self.on(on, "tc");
            command.args(["qdisc", "del", "dev", &device, "root"]);
            // Only one of the ends may have been changed.
            let _ = command.stderr(Stdio::null()).status();
        }
    }

    /// Has a server not reach the others, or reach them again.
    pub(crate) fn set_split(&self, server: usize, is_split: bool) {
        for other in (0..SERVERS).filter(|other| *other != server) {
            let mut command = self.on(Machine::Server(server), "ip");
            let action = if is_split { "add" } else { "del" };
            let address = self.address(other);
            expect_success(command.args(["route", action, "blackhole", &address]));
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let machines: Vec<_> = self.processes.keys().copied().collect();
        for machine in machines {
            self.kill(machine);
        }
    }
}

/// Makes a namespace for each machine, and connects them by a bridge.
fn make() -> BTreeMap<Machine, Holder> {
    let observer = Holder::start();
    let bridge = "link add br0 type bridge\naddress add 10.77.0.1/24 dev br0\n\
                  link set br0 up\nlink set lo up\n";
    observer.ip(bridge);
    let mut holders = BTreeMap::new();
    for machine in machines() {
        let holder = Holder::start();
        let (link, number) = (machine.link(), machine.number());
        observer.ip(&format!(
            "link add {link} type veth peer name eth0 netns {}\nlink set {link} master br0 up\n",
            holder.pid()
        ));
        holder.ip(&format!(
            "address add 10.77.0.{number}/24 dev eth0\nlink set lo up\nlink set eth0 up\n"
        ));
        holders.insert(machine, holder);
    }
    holders.insert(Machine::Observer, observer);
    holders
}

fn expect_success(command: &mut Command) {
    let output = command.output().expect("a program of iproute2");
    assert!(output.status.success(), "{command:?}: {output:?}");
}

/// Returns libfaketime, if it is installed.
pub(crate) fn faketime() -> Option<PathBuf> {
    let directories = fs::read_dir("/usr/lib").ok()?;
    let libraries = directories
        .filter_map(Result::ok)
        .map(|directory| directory.path().join("faketime/libfaketimeMT.so.1"));
    libraries.into_iter().find(|library| library.is_file())
}
