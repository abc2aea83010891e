//! The lines that a server writes.

use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// A time far longer than anything here takes: a server that takes so long has failed.
pub(super) const DEADLINE: Duration = Duration::from_mins(1);

/// The log of one run of a server, read by a thread of its own as long as the server writes.
pub(super) struct Log {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    text: String,
    has_ended: bool,
}

impl Log {
    pub(super) fn read(output: impl Read + Send + 'static) -> Arc<Self> {
        let log = Arc::new(Self {
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        let reader = Arc::clone(&log);
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                reader.change(|state| {
                    state.text.push_str(&line);
                    state.text.push('\n');
                });
            }
            reader.change(|state| state.has_ended = true);
        });
        log
    }

    /// Waits until the text is in the log. Returns `false` if the log ends without it.
    pub(super) fn await_text(&self, text: &str) -> bool {
        let mut state = self.state.lock();
        loop {
            if state.text.contains(text) {
                return true;
            }
            if state.has_ended {
                return false;
            }
            let waited = self.changed.wait_for(&mut state, DEADLINE);
            assert!(!waited.timed_out(), "no {text:?} in\n{}", state.text);
        }
    }

    pub(super) fn text(&self) -> String {
        self.state.lock().text.clone()
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock());
        self.changed.notify_all();
    }
}
