//! A thread for each connection: it reads, waits, works and writes, and does nothing else.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use models::{Counter, Model, Queue, accept, announce, converse, listen};

/// A connection beyond waits in the backlog.
const THREADS_MAX: usize = 16_384;
/// Address space that each thread reserves; the kernel gives memory to what is touched.
const STACK_BYTES: usize = 2 * 1024 * 1024;
/// A client that is idle for so long is disconnected.
const IDLE_MAX: Duration = Duration::from_mins(1);

fn main() -> anyhow::Result<()> {
    let model = Model {
        about: "Thread per request: each connection has a thread of its own",
        limits: &[("threads", THREADS_MAX), ("bytes of stack", STACK_BYTES)],
    };
    let listener = listen(model.address())?;
    announce(&listener)?;
    let threads = Arc::new(Queue::new(THREADS_MAX));
    let counter = Arc::new(Counter::default());
    loop {
        threads.push(());
        let stream = accept(&listener);
        let (threads, counter) = (Arc::clone(&threads), Arc::clone(&counter));
        thread::Builder::new()
            .stack_size(STACK_BYTES)
            .spawn(move || {
                // A client that leaves is no fault of ours.
                let _ = converse(stream, IDLE_MAX, |request| {
                    thread::sleep(request.wait);
                    request.respond(|| counter.add())
                });
                threads.pop();
            })?;
    }
}
