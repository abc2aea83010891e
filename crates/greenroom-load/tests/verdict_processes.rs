//! The server's processes are found, and what they use is counted.

use std::io::{self, BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use greenroom_load::plan::{Place, Target};
use greenroom_load::verdict::Processes;
use nix::sys::resource::{UsageWho, getrusage};

/// CPU time that a fixture uses for one command.
const BURNED: Duration = Duration::from_millis(100);
/// CPU time that a fixture uses beside that, and the error of the ticks.
const TOLERANCE: Duration = Duration::from_millis(45);
/// The variable with the address on which a fixture listens; it is a process of this test's own
/// program.
const BIND: &str = "GREENROOM_TEST_BIND";
const SAYS: &str = "> ";
const REPORT: &str = "say what you used";

/// A process that obeys commands, line by line, and ends with its standard input.
struct Fixture {
    child: Child,
    orders: ChildStdin,
    replies: BufReader<ChildStdout>,
}

impl Fixture {
    /// Starts a fixture that listens there; returns its own line about it: the port.
    fn start(bind: &str) -> (Self, String) {
        let mut child = Command::new(std::env::current_exe().expect("this program has a path"))
            .args(["--exact", "fixture", "--ignored", "--nocapture"])
            .env(BIND, bind)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program starts again");
        let mut fixture = Self {
            orders: child.stdin.take().expect("a pipe"),
            replies: BufReader::new(child.stdout.take().expect("a pipe")),
            child,
        };
        let port = fixture.reply();
        (fixture, port)
    }

    /// Returns a fixture by its process, of which the first sample is taken.
    fn sampled() -> (Self, Processes) {
        let (fixture, _) = Self::start("127.0.0.1:0");
        let mut processes = Processes::of(fixture.child.id()).expect("it runs");
        processes.sample();
        (fixture, processes)
    }

    fn reply(&mut self) -> String {
        loop {
            let mut line = String::new();
            let length = self.replies.read_line(&mut line).expect("lines of text");
            assert!(length > 0, "the fixture ended");
            if let Some(reply) = line.trim_end().strip_prefix(SAYS) {
                return reply.to_owned();
            }
        }
    }

    fn order(&mut self, order: &str) {
        writeln!(self.orders, "{order}").expect("the fixture reads");
        assert_eq!(self.reply(), "done");
    }

    /// Returns the CPU time that it and its children have used, as it says itself.
    fn used(&mut self) -> Duration {
        writeln!(self.orders, "{REPORT}").expect("the fixture reads");
        let micros = self.reply().parse().expect("a number");
        Duration::from_micros(micros)
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn say(reply: &str) {
    let mut out = io::stdout();
    writeln!(out, "\n{SAYS}{reply}").expect("the test listens");
}

fn cpu_time(of: UsageWho) -> Duration {
    let usage = getrusage(of).expect("the kernel tells");
    let times = [usage.user_time(), usage.system_time()];
    let micros = times.map(|time| time.tv_sec() * 1_000_000 + time.tv_usec());
    Duration::from_micros(micros.iter().sum::<i64>().unsigned_abs())
}

fn burn() {
    let end = cpu_time(UsageWho::RUSAGE_THREAD) + BURNED;
    while cpu_time(UsageWho::RUSAGE_THREAD) < end {
        std::hint::spin_loop();
    }
}

#[test]
#[ignore = "the process that the other tests look at"]
fn fixture() {
    let bind = std::env::var(BIND).expect("told where to listen");
    if bind.starts_with('/') {
        let _listener = UnixListener::bind(&bind).expect("a path that is free");
        say(&bind);
        obey();
    } else {
        let listener = TcpListener::bind(&bind).expect("a port that is free");
        say(&listener.local_addr().expect("bound").port().to_string());
        obey();
    }
}

fn obey() {
    let mut child: Option<Fixture> = None;
    for order in io::stdin().lines() {
        match order.expect("text").as_str() {
            "burn" => burn(),
            "burn in a thread" => std::thread::spawn(burn).join().expect("it ends"),
            "have a child" => child = Some(Fixture::start("127.0.0.1:0").0),
            "let the child burn" => child.as_mut().expect("a child").order("burn"),
            "end the child" => drop(child.take()),
            REPORT => {
                let own = cpu_time(UsageWho::RUSAGE_SELF) + cpu_time(UsageWho::RUSAGE_CHILDREN);
                let of_child = child.as_mut().map_or(Duration::ZERO, Fixture::used);
                say(&(own + of_child).as_micros().to_string());
                continue;
            }
            other => panic!("what is {other:?}?"),
        }
        say("done");
    }
}

fn listening(host: &str, port: &str) -> Option<Processes> {
    let target: Target = format!("http://{host}:{port}/").parse().expect("a URL");
    Processes::listening([&target])
}

#[track_caller]
fn assert_is(processes: Option<Processes>, server: &Fixture) -> Processes {
    let mut processes = processes.expect("it listens");
    processes.sample();
    assert_eq!(processes.pids().collect::<Vec<_>>(), [server.child.id()]);
    processes
}

fn used(processes: &Processes) -> Duration {
    let usage = processes.usage();
    usage.user + usage.system
}

/// Asserts what was found of a fixture that has burned so many times. A busy machine charges a
/// process for more than it does, so the other bound is what the kernel tells the fixture.
#[track_caller]
fn assert_burned(processes: &Processes, times: u32, told: Duration) {
    let used = used(processes);
    assert!(used + TOLERANCE >= BURNED * times, "{used:?}");
    assert!(used <= told + TOLERANCE, "{used:?} of {told:?}");
}

#[test]
fn a_server_is_found_by_its_port() {
    let (mut server, port) = Fixture::start("127.0.0.1:0");
    server.order("burn");
    let mut found = assert_is(listening("127.0.0.1", &port), &server);
    assert_eq!(used(&found), Duration::ZERO);
    server.order("burn");
    found.sample();
    assert_burned(&found, 1, server.used());
    let usage = found.usage();
    assert_eq!(usage.processes, 1);
    assert!(usage.threads_max >= 1 && usage.rss_bytes_max > 100_000);
    assert!(usage.busiest_thread + TOLERANCE >= BURNED, "{usage:?}");
    assert!(usage.cores >= 1 && usage.cores_shared == usage.cores);
}

#[test]
fn a_server_is_found_that_listens_on_every_address() {
    for bind in ["0.0.0.0:0", "[::]:0"] {
        let (server, port) = Fixture::start(bind);
        for host in ["127.0.0.1", "127.0.0.2", "localhost"] {
            assert_is(listening(host, &port), &server);
        }
    }
}

#[test]
fn a_server_is_found_by_its_unix_socket() {
    let path = std::env::temp_dir().join(format!("greenroom-verdict-{}", std::process::id()));
    let (server, _) = Fixture::start(path.to_str().expect("text"));
    let target = Target {
        place: Place::Unix(path.clone()),
        .."http://localhost/".parse().expect("a URL")
    };
    let found = Processes::listening([&target]);
    std::fs::remove_file(&path).expect("the fixture made it");
    assert_is(found, &server);
}

/// As `systemd` does for a service that is started by its socket.
#[test]
fn a_service_manager_is_not_the_server() {
    let directory = tempfile::tempdir().expect("a directory");
    let (perl, path) = (
        directory.path().join("systemd"),
        directory.path().join("socket"),
    );
    std::os::unix::fs::symlink("/usr/bin/perl", &perl).expect("room for a link");
    let program = "use IO::Socket::UNIX;
        my $s = IO::Socket::UNIX->new(Local => shift, Listen => 1) or die $!;
        $| = 1; print qq{ready\n}; <STDIN>;";
    let mut manager = Command::new(&perl)
        .args(["-e", program])
        .arg(&path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut ready = String::new();
    let mut output = BufReader::new(manager.stdout.take().expect("a pipe"));
    output.read_line(&mut ready).expect("a line");
    assert_eq!(ready, "ready\n");
    let target = Target {
        place: Place::Unix(path),
        .."http://localhost/".parse().expect("a URL")
    };
    assert!(Processes::listening([&target]).is_none());
    drop(manager.stdin.take());
    manager.wait().expect("it ends with its input");
}

#[test]
fn children_count_while_they_live_and_after() {
    let (mut server, mut found) = Fixture::sampled();
    server.order("have a child");
    found.sample();
    assert_eq!(found.pids().count(), 2);
    assert_eq!(found.usage().processes, 2);
    server.order("let the child burn");
    found.sample();
    assert_burned(&found, 1, server.used());
    server.order("let the child burn");
    server.order("end the child");
    found.sample();
    assert_eq!(found.pids().collect::<Vec<_>>(), [server.child.id()]);
    assert_burned(&found, 2, server.used());
}

#[test]
fn a_child_that_was_never_seen_counts() {
    let (mut server, mut found) = Fixture::sampled();
    server.order("have a child");
    server.order("let the child burn");
    server.order("end the child");
    found.sample();
    assert_burned(&found, 1, server.used());
}

#[test]
fn a_thread_that_was_never_seen_counts() {
    let (mut server, mut found) = Fixture::sampled();
    server.order("burn in a thread");
    found.sample();
    assert_burned(&found, 1, server.used());
}

#[test]
fn a_server_that_ended_keeps_what_it_used() {
    let (mut server, mut found) = Fixture::sampled();
    server.order("burn");
    found.sample();
    let told = server.used();
    drop(server);
    found.sample();
    assert_burned(&found, 1, told);
    assert_eq!(found.usage().processes, 0);
}

#[test]
fn this_program_is_no_server() {
    assert!(Processes::of(std::process::id()).is_none());
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port().to_string();
    assert!(listening("127.0.0.1", &port).is_none());
}

#[test]
fn another_machine_is_not_looked_at() {
    let (_server, port) = Fixture::start("0.0.0.0:0");
    // An address for documentation (RFC 5737), which no machine has.
    assert!(listening("192.0.2.1", &port).is_none());
    assert!(Processes::of(u32::MAX).is_none());
}
