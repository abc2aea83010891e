//! The log of the process. All tests share it, so look for words that only one of them logs.

use std::io::{self, Write};
use std::sync::{Mutex, Once, PoisonError};
use std::time::Duration;

use tokio::time::sleep;

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

/// Waits for a line with both texts, and returns it.
pub(crate) async fn line(with: &str, and: &str) -> String {
    loop {
        let written = written();
        let mut lines = written.lines();
        if let Some(line) = lines.find(|line| line.contains(with) && line.contains(and)) {
            return line.to_owned();
        }
        sleep(Duration::from_millis(5)).await;
    }
}

/// Returns the line with this text and those that belong to it, which are indented.
pub(crate) async fn entry(with: &str) -> String {
    line(with, "").await;
    let written = written();
    let mut entry = Vec::new();
    for line in written.lines() {
        if !line.starts_with("    ") {
            if entry.iter().any(|line: &&str| line.contains(with)) {
                break;
            }
            entry.clear();
        }
        entry.push(line);
    }
    entry.join("\n")
}

pub(crate) fn written() -> String {
    let written = WRITTEN.lock().unwrap_or_else(PoisonError::into_inner);
    String::from_utf8_lossy(&written).into_owned()
}
