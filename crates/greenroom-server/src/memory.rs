//! The memory that the connections of a server hold, and its limit.

use std::cell::Cell;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Default limit in bytes where the system does not tell its memory: 256 MiB.
const UNKNOWN: usize = 256 * 1_024 * 1_024;
/// Divisor of the machine's memory for the default limit: a quarter.
const SHARE: usize = 4;

/// Bytes that the connections of all loops hold.
#[derive(Debug)]
pub(crate) struct Memory {
    held: AtomicUsize,
    held_max: usize,
}

impl Memory {
    pub(crate) fn new(held_max: usize) -> Self {
        Self {
            held: AtomicUsize::new(0),
            held_max,
        }
    }

    /// Returns `true` if no new request is to begin.
    pub(crate) fn is_full(&self) -> bool {
        self.held.load(Ordering::Relaxed) >= self.held_max
    }

    /// Returns `true` if the others are at the limit beside a connection that holds `bytes` itself.
    pub(crate) fn is_full_beside(&self, bytes: usize) -> bool {
        let held = self.held.load(Ordering::Relaxed);
        held.saturating_sub(bytes) >= self.held_max
    }

    /// A connection holds `now` where it held `before`.
    pub(crate) fn change(&self, before: usize, now: usize) {
        // Relaxed suffices: the limit is soft, and no other memory is read by what is counted here.
        if now > before {
            self.held.fetch_add(now - before, Ordering::Relaxed);
        } else {
            self.held.fetch_sub(before - now, Ordering::Relaxed);
        }
    }
}

/// Bytes that one connection holds, as the server was last told; none once it is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    memory: Arc<Memory>,
    bytes: Cell<usize>,
}

impl Held {
    pub(crate) fn new(memory: Arc<Memory>) -> Self {
        Self {
            memory,
            bytes: Cell::new(0),
        }
    }

    /// Tells the server what the connection holds now.
    pub(crate) fn note(&self, bytes: usize) {
        let before = self.bytes.replace(bytes);
        if bytes != before {
            self.memory.change(before, bytes);
        }
    }

    /// Returns `true` if no new request is to begin.
    pub(crate) fn is_full(&self) -> bool {
        self.memory.is_full()
    }

    /// Returns `true` if the others are at the limit beside this connection.
    pub(crate) fn is_full_beside(&self) -> bool {
        self.memory.is_full_beside(self.bytes.get())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.note(0);
    }
}

/// A quarter of the memory of this machine, or of the container that this process is in.
pub(crate) fn memory_default() -> usize {
    let of_machine = fs::read_to_string("/proc/meminfo").ok();
    let of_machine = of_machine.and_then(|text| total(&text));
    // Without a limit it says `max`.
    let of_container = fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let of_container = of_container.and_then(|text| text.trim().parse().ok());
    let known = of_machine.into_iter().chain(of_container).min();
    known.map_or(UNKNOWN, |bytes: usize| bytes / SHARE)
}

/// `MemTotal` of `/proc/meminfo` (proc(5)), in bytes.
fn total(text: &str) -> Option<usize> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: usize = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1_024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_is_read_as_the_system_tells_it() {
        let text = "MemTotal:        8010264 kB\nMemFree:          524288 kB\n";
        assert_eq!(total(text), Some(8_202_510_336));
        assert_eq!(total("MemFree: 1 kB\n"), None);
    }

    #[test]
    fn what_is_given_back_is_free() {
        let memory = Memory::new(10);
        memory.change(0, 4);
        memory.change(4, 10);
        assert!(memory.is_full());
        memory.change(10, 9);
        assert!(!memory.is_full());
    }
}
