//! Ports that are free, and that no other test gets as long as this process runs.

use std::fs::{self, File};
use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Mutex, PoisonError};

/// Ports below those that the system gives to connections: nothing else takes the port of a
/// server that is killed and started again, and a client that tries again and again to connect to
/// it, while nobody listens, never connects to itself.
const PORTS: std::ops::Range<u16> = 20_000..32_000;

pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let ports = PORTS.end - PORTS.start;
    let begin = u16::try_from(std::process::id() % u32::from(ports)).expect("it is below");
    loop {
        let offset = begin.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % ports;
        let port = PORTS.start + offset;
        if hold(port) && TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// Takes the port. Returns `true` if no other process holds it.
fn hold(port: u16) -> bool {
    static HELD: Mutex<Vec<File>> = Mutex::new(Vec::new());
    let directory = std::env::temp_dir().join("greenroom-test-ports");
    fs::create_dir_all(&directory).expect("locks have a place");
    let lock = File::create(directory.join(port.to_string())).expect("a lock can be made");
    let is_held = lock.try_lock().is_ok();
    if is_held {
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        held.push(lock);
    }
    is_held
}
