//! An event loop for sockets, timers and what is short, and a pool of threads for what computes.
//!
//! Its author says of each handler where it runs. A thread for each core would do for computing;
//! the pool is as large as those of the other models, since what blocks would run there too.

use std::sync::Arc;
use std::thread;

use models::{CONNECTIONS_MAX, POOL_THREADS_MAX, QUEUE_MAX};
use models::{EventLoop, Id, Model, Queue, Request, Work, announce, listen};

fn main() -> anyhow::Result<()> {
    let model = Model {
        about: "Loop and pool: a loop for what waits, threads for what computes",
        limits: &[
            ("connections; more are closed", CONNECTIONS_MAX),
            ("threads", POOL_THREADS_MAX),
            ("requests in the queue; more get 503", QUEUE_MAX),
        ],
    };
    let listener = listen(model.address())?;
    announce(&listener)?;
    let event_loop = EventLoop::new(listener)?;
    let queue = Arc::new(Queue::<(Id, Request)>::new(QUEUE_MAX));
    for _ in 0..POOL_THREADS_MAX {
        let (queue, done) = (Arc::clone(&queue), event_loop.done());
        thread::Builder::new().spawn(move || {
            loop {
                let (id, request) = queue.pop();
                done.push(id, request.respond(|| 0));
            }
        })?;
    }
    let mut counter = 0;
    event_loop.run(|id, request| match request.work {
        Work::Compute(_) => {
            let refused = queue.try_push((id, request)).err();
            refused.map(|(_, request)| request.overloaded())
        }
        _ => Some(request.respond(|| {
            counter += 1;
            counter
        })),
    })?;
    Ok(())
}
