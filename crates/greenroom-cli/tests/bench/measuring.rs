//! The program while it measures.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::Finished;
use crate::program;

/// The time-out of a test's condition; only a failing test waits so long.
const PATIENCE: Duration = Duration::from_mins(1);
/// The interval between two looks at the program's end.
const POLL: Duration = Duration::from_millis(5);

/// `greenroom bench` under way. It is killed if a test forgets it or fails.
pub(crate) struct Measuring {
    child: Child,
    stdout: Option<JoinHandle<String>>,
    progress: Receiver<String>,
    seen: Vec<String>,
}

impl Measuring {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::spawn(&mut program::command(&[&["bench"], arguments].concat()))
    }

    pub(crate) fn spawn(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut stdout = child.stdout.take().expect("it is piped");
        let stderr = child.stderr.take().expect("it is piped");
        let (sender, progress) = mpsc::channel();
        thread::spawn(move || {
            let lines = BufReader::new(stderr).lines();
            lines
                .map_while(Result::ok)
                .try_for_each(|line| sender.send(line))
        });
        let stdout = thread::spawn(move || {
            let mut text = String::new();
            stdout.read_to_string(&mut text).expect("it is text");
            text
        });
        Self {
            child,
            stdout: Some(stdout),
            progress,
            seen: Vec::new(),
        }
    }

    /// Waits for a line on standard error that `is_right` accepts.
    pub(crate) fn wait_for_line(&mut self, is_right: impl Fn(&str) -> bool) {
        loop {
            let line = self.progress.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|error| {
                panic!("no such line on standard error: {error}: {:#?}", self.seen)
            });
            self.seen.push(line);
            if self.seen.last().is_some_and(|line| is_right(line)) {
                return;
            }
        }
    }

    /// Waits until an interval had responses.
    pub(crate) fn wait_for_responses(&mut self) {
        self.wait_for_line(|line| line.contains("/s ") && !line.contains(" 0/s "));
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).expect("the program was not waited for yet");
    }

    /// Waits for the program to end by itself.
    pub(crate) fn finish(mut self) -> Finished {
        let status = self.wait();
        let stdout = self.stdout.take().expect("it is taken once");
        let stdout = stdout.join().expect("standard output is text");
        self.seen.extend(self.progress.iter());
        Finished {
            status: status.code(),
            stdout,
            stderr: self.seen.join("\n"),
        }
    }

    fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait().expect("the program is our child") {
                return status;
            }
            thread::park_timeout(POLL);
        }
        panic!("the program hangs: {:#?}", self.seen);
    }
}

impl Drop for Measuring {
    fn drop(&mut self) {
        // It may have ended already, which is no failure.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
