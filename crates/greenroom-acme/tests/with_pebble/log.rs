//! The log of a test's thread.

use std::cell::RefCell;
use std::io::{self, Write};
use std::sync::Once;

thread_local! {
    /// A test has a thread of its own, and its runtime no other.
    static LINES: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Keeps the lines that each thread logs from now on.
///
/// One subscriber for the process: with one for each thread, tracing would ask that of the thread
/// which comes by first whether a line is of interest to any.
pub(crate) fn start() {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        tracing_subscriber::fmt()
            .with_ansi(false)
            .with_writer(|| Lines)
            .init();
    });
}

/// Returns the one line of this thread with this text.
pub(crate) fn line(text: &str) -> String {
    let bytes = LINES.with_borrow(Clone::clone);
    let log = String::from_utf8(bytes).expect("text");
    let mut found = log.lines().filter(|line| line.contains(text));
    let line = found.next().unwrap_or_else(|| panic!("not in {log}"));
    assert_eq!(found.next(), None, "it is there once");
    line.to_owned()
}

struct Lines;

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LINES.with_borrow_mut(|lines| lines.extend(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
