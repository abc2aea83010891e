//! Requests `/hello` again and again while another test runs.

use std::net::SocketAddr;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::http::{self, HELLO};

const INTERVAL: Duration = Duration::from_millis(100);
const RESPONSE_DEADLINE: Duration = Duration::from_secs(30);

/// A client that sends requests from its start until [`Probe::finish`].
pub(crate) struct Probe {
    stop: Sender<()>,
    thread: JoinHandle<Tally>,
}

#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) served: usize,
    pub(crate) failures: Vec<String>,
}

impl Probe {
    pub(crate) fn start(address: SocketAddr) -> Self {
        let (stop, stopped) = mpsc::channel();
        let thread = thread::spawn(move || {
            let mut tally = Tally::default();
            while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                tally.add(ask(address));
            }
            tally
        });
        Self { stop, thread }
    }

    pub(crate) fn finish(self) -> Tally {
        drop(self.stop);
        self.thread.join().expect("asking does not panic")
    }
}

impl Tally {
    fn add(&mut self, outcome: Result<(), String>) {
        match outcome {
            Ok(()) => self.served += 1,
            Err(failure) => self.failures.push(failure),
        }
    }
}

fn ask(address: SocketAddr) -> Result<(), String> {
    match http::get(address, "/hello", RESPONSE_DEADLINE) {
        Ok(response) if response.status == 200 && response.body == HELLO => Ok(()),
        other => Err(format!("{other:?}")),
    }
}
