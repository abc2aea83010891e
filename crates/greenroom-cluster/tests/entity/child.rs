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
    /// The lines that it prints: `added N` for each number that surely was.
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

    /// Waits until it has added one more number since now. Returns those that it has added since it
    /// was asked last.
    pub(crate) async fn progress(&mut self) -> Vec<u64> {
        let mut added = Vec::new();
        while let Ok(line) = self.lines.try_recv() {
            added.extend(number(&line));
        }
        let before = added.len();
        while added.len() == before {
            let line = self.line().await;
            added.extend(number(&line));
        }
        added
    }

    /// Kills it by SIGKILL. Returns the numbers that it has added since it was asked last.
    pub(crate) async fn kill(mut self) -> Vec<u64> {
        self.process.kill().expect("it runs");
        self.process.wait().expect("it ends");
        let mut added = Vec::new();
        while let Some(line) = self.lines.recv().await {
            added.extend(number(&line));
        }
        added
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

/// Returns the number that surely was added.
fn number(line: &str) -> Option<u64> {
    let number = line.strip_prefix("added ")?;
    Some(number.parse().expect("it is a number"))
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
            if let Ok(Ok(())) = account.add(number).ask().await {
                println!("added {number}");
            }
            // So that the state stays small, however long the test takes.
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
}
