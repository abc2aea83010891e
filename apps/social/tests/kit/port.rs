use std::fs::File;
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// Ports below those that the system gives to outgoing connections.
const PORTS: Range<u16> = 10_000..32_000;

const TRIES_MAX: usize = 1_000;

/// Locks of the ports that this process has been given.
static HELD: Mutex<Vec<File>> = Mutex::new(Vec::new());

/// Returns a port of 127.0.0.1 that is free, and that no other test gets as long as this process
/// runs.
pub(crate) fn free() -> u16 {
    let mut candidates = std::iter::repeat_with(|| rand::random_range(PORTS)).take(TRIES_MAX);
    let free = candidates.find(|port| hold(*port) && is_free(*port));
    free.expect("one of a thousand ports is free")
}

/// Takes the lock of a port; `false` if another process holds it.
fn hold(port: u16) -> bool {
    let directory = std::env::temp_dir().join("greenroom-test-ports");
    std::fs::create_dir_all(&directory).expect("locks have a place");
    let lock = File::create(directory.join(port.to_string())).expect("a lock can be made");
    let is_held = lock.try_lock().is_ok();
    if is_held {
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        held.push(lock);
    }
    is_held
}

fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}
