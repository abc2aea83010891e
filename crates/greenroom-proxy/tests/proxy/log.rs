//! The log of the process. All tests share it, so look for words that only one of them logs.

use std::io::{self, Write};
use std::sync::{Mutex, Once, PoisonError};

static WRITTEN: Mutex<Vec<u8>> = Mutex::new(Vec::new());

struct Log;

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut written = WRITTEN.lock().unwrap_or_else(PoisonError::into_inner);
        written.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Keeps all log lines from now on.
pub(crate) fn keep() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let log = tracing_subscriber::fmt().with_ansi(false);
        log.with_writer(|| Log).init();
    });
}

/// Returns the lines with both texts.
pub(crate) fn lines(with: &str, and: &str) -> Vec<String> {
    let written = WRITTEN.lock().unwrap_or_else(PoisonError::into_inner);
    let written = String::from_utf8_lossy(&written);
    let lines = written.lines();
    let lines = lines.filter(|line| line.contains(with) && line.contains(and));
    lines.map(str::to_owned).collect()
}
