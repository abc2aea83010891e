//! A node in a process of its own, that can be killed and paused.

use std::env;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::sync::mpsc;

use crate::account::{AccountRemoteMessages, account, host};

const URL: &str = "GREENROOM_TEST_NODE_URL";
const LEASE_MS: &str = "GREENROOM_TEST_NODE_LEASE_MS";
/// The account that the node adds to.
pub(crate) const SHARED: &str = "shared";

/// A node that hosts accounts and adds the numbers from 0 to the shared one, each once.
pub(crate) struct ChildNode {
    process: Child,
    /// It ends when this is closed.
    _input: ChildStdin,
    /// What it prints of each number: `added N`, or `unknown N` if it cannot tell.
    lines: mpsc::UnboundedReceiver<String>,
}

impl ChildNode {
    /// Starts a node, and waits until it hosts accounts.
    pub(crate) async fn start(url: &str, lease: Duration) -> Self {
        let program = env::current_exe().expect("it runs");
        let mut process = Command::new(program)
            .args(["--ignored", "--exact", "child::node", "--nocapture"])
            .env(URL, url)
            .env(LEASE_MS, lease.as_millis().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let input = process.stdin.take().expect("it is piped");
        let output = process.stdout.take().expect("it is piped");
        let (sender, lines) = mpsc::unbounded_channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        let mut node = Self {
            process,
            _input: input,
            lines,
        };
        while node.line().await != "hosts" {}
        node
    }

    async fn line(&mut self) -> String {
        self.lines.recv().await.expect("it runs")
    }

    /// Waits until it has added one more number since now. Returns all that it has added, and those
    /// of which it does not know.
    pub(crate) async fn progress(&mut self) -> (Vec<u64>, Vec<u64>) {
        let (mut added, mut unknown) = self.so_far();
        let before = added.len();
        while added.len() == before {
            let line = self.line().await;
            note(&line, &mut added, &mut unknown);
        }
        (added, unknown)
    }

    /// Returns the numbers that it has said it added, and those of which it does not know.
    pub(crate) fn so_far(&mut self) -> (Vec<u64>, Vec<u64>) {
        let (mut added, mut unknown) = (Vec::new(), Vec::new());
        while let Ok(line) = self.lines.try_recv() {
            note(&line, &mut added, &mut unknown);
        }
        (added, unknown)
    }

    /// Kills it by SIGKILL. Returns what it had said that it added, and what it did not know.
    pub(crate) async fn kill(mut self) -> (Vec<u64>, Vec<u64>) {
        self.process.kill().expect("it runs");
        self.process.wait().expect("it ends");
        let (mut added, mut unknown) = (Vec::new(), Vec::new());
        while let Some(line) = self.lines.recv().await {
            note(&line, &mut added, &mut unknown);
        }
        (added, unknown)
    }

    pub(crate) fn pause(&self) {
        self.signal(Signal::STOP);
    }

    pub(crate) fn go_on(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).expect("it runs");
    }
}

impl Drop for ChildNode {
    fn drop(&mut self) {
        // It may have been waited for already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn note(line: &str, added: &mut Vec<u64>, unknown: &mut Vec<u64>) {
    let numbers = match line.split_once(' ') {
        Some(("added", number)) => Some((added, number)),
        Some(("unknown", number)) => Some((unknown, number)),
        _ => None,
    };
    if let Some((numbers, number)) = numbers {
        numbers.push(number.parse().expect("it is a number"));
    }
}

#[test]
#[ignore = "this is the node that other tests start"]
#[expect(clippy::print_stdout, reason = "it tells the test that started it")]
fn node() {
    let url = env::var(URL).expect("it was started by a test");
    let lease = env::var(LEASE_MS).expect("it was started by a test");
    let lease = Duration::from_millis(lease.parse().expect("a number"));
    std::thread::spawn(|| {
        let _ = std::io::stdin().lines().count();
        std::process::exit(0);
    });
    let runtime = tokio::runtime::Runtime::new().expect("there are threads");
    runtime.block_on(async {
        let host = host(&url, lease).await;
        println!("hosts");
        let account = account(&host.cluster, SHARED);
        for number in 0_u64.. {
            match account.add(number).ask().await {
                Ok(Ok(())) => println!("added {number}"),
                _ => println!("unknown {number}"),
            }
            // So that the state stays small, however long the test takes.
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
}
