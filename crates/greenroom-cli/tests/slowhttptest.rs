//! slowhttptest: 200 slow headers, 200 slow bodies and 200 slow reads at once, beside `/hello`.

mod outside;

use std::process::Command;
use std::thread;
use std::time::Duration;

use outside::probe::Probe;
use outside::server::Server;
use outside::tools;

/// Longer than the server's time-outs of heads and bodies (10 s each, then a turn of its wheel).
const ATTACK_SECONDS: u64 = 20;

const CONNECTIONS: &str = "200";

/// The message of slowhttptest when the server has closed every connection before the attack's end.
const ALL_CUT: &str = "Exit status: No open connections left";

#[test]
fn hello_stays_available_beside_slow_headers_slow_bodies_and_slow_reads() {
    let mut server = Server::start();
    let baseline = server.descriptors_at_rest();
    let probe = Probe::start(server.address());

    let [headers, bodies, reads] = [
        slow_headers(&server),
        slow_bodies(&server),
        slow_reads(&server),
    ]
    .map(|command| thread::spawn(move || attack(command)))
    .map(|attack| attack.join().expect("slowhttptest runs"));

    let tally = probe.finish();
    assert!(tally.failures.is_empty(), "/hello failed: {tally:?}");
    assert!(tally.served > 0, "/hello was never asked");
    assert!(headers.contains(ALL_CUT), "slow headers:\n{headers}");
    assert!(bodies.contains(ALL_CUT), "slow bodies:\n{bodies}");
    assert!(
        reads.contains("Exit status: Hit test time limit"),
        "slow reads:\n{reads}"
    );
    server.await_descriptors(baseline);
    server.assert_sound();
}

/// Sends a few bytes of another field every two seconds, and never the end of the head.
fn slow_headers(server: &Server) -> Command {
    let mut command = slowhttptest();
    command
        .args(["-H", "-t", "GET", "-i", "2", "-x", "24"])
        .args(["-u", &server.url("/hello")]);
    command
}

/// Sends a few bytes of a body of 8 kB every two seconds.
fn slow_bodies(server: &Server) -> Command {
    let mut command = slowhttptest();
    command
        .args(["-B", "-t", "POST", "-i", "2", "-x", "10", "-s", "8192"])
        .args(["-u", &server.url("/upload")]);
    command
}

/// Reads 32 bytes of three pipelined responses of 10 MB every five seconds, through a small window.
/// Such a peer does read: the server keeps the connection, and must not hold much for it.
fn slow_reads(server: &Server) -> Command {
    let mut command = slowhttptest();
    command
        .args([
            "-X", "-w", "512", "-y", "1024", "-n", "5", "-z", "32", "-k", "3",
        ])
        .args(["-u", &server.url("/bytes/10000000")]);
    command
}

fn slowhttptest() -> Command {
    let deadline = Duration::from_secs(2 * ATTACK_SECONDS);
    let mut command = tools::bounded(tools::system("slowhttptest"), deadline);
    command
        .args(["-c", CONNECTIONS, "-r", CONNECTIONS, "-p", "2"])
        .args(["-l", &ATTACK_SECONDS.to_string()]);
    command
}

/// Returns the output of slowhttptest, without its colours.
fn attack(mut command: Command) -> String {
    let text = tools::run(&mut command)
        .expect_success("slowhttptest")
        .stdout;
    let mut plain = String::new();
    for (index, piece) in text.split("\x1b[").enumerate() {
        let piece = match index {
            0 => piece,
            _ => piece
                .split_once(|c: char| c.is_ascii_alphabetic())
                .map_or("", |(_, rest)| rest),
        };
        plain.push_str(piece);
    }
    plain
}
