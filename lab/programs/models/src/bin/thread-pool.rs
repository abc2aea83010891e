//! A fixed number of threads, and a bounded queue of connections before them.
//!
//! A thread keeps its connection while nobody waits. Once somebody does, the response says
//! `Connection: close`, as such servers do when their threads are scarce: else 200 clients that
//! keep their connections would keep all others out.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use models::{Counter, Model, POOL_THREADS_MAX, QUEUE_MAX, Queue};
use models::{accept, announce, converse, listen};

/// An idle client keeps a thread from others for at most so long.
const IDLE_MAX: Duration = Duration::from_secs(1);

fn main() -> anyhow::Result<()> {
    let model = Model {
        about: "Thread pool: threads take connections from a bounded queue",
        limits: &[
            ("threads", POOL_THREADS_MAX),
            (
                "connections in the queue; more stay in the backlog",
                QUEUE_MAX,
            ),
        ],
    };
    let listener = listen(model.address())?;
    let queue = Arc::new(Queue::new(QUEUE_MAX));
    let counter = Arc::new(Counter::default());
    for _ in 0..POOL_THREADS_MAX {
        let (queue, counter) = (Arc::clone(&queue), Arc::clone(&counter));
        thread::Builder::new().spawn(move || {
            loop {
                // A client that leaves is no fault of ours.
                let _ = converse(queue.pop(), IDLE_MAX, |mut request| {
                    thread::sleep(request.wait);
                    request.close |= !queue.is_empty();
                    request.respond(|| counter.add())
                });
            }
        })?;
    }
    announce(&listener)?;
    loop {
        queue.push(accept(&listener));
    }
}
