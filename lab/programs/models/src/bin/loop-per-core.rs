//! An event loop for each core, each with a listening socket of its own: the kernel chooses one of
//! them for each connection, by a hash of its addresses. What they share needs a lock again.

use std::sync::Arc;
use std::{io, thread};

use models::{CONNECTIONS_MAX, Counter, EventLoop, Model, announce, cores, listen};

fn main() -> anyhow::Result<()> {
    let model = Model {
        about: "Loop per core: an event loop and a listening socket for each core",
        limits: &[("connections of each loop; more are closed", CONNECTIONS_MAX)],
    };
    let first = listen(model.address())?;
    let address = first.local_addr()?;
    let mut listeners = vec![first];
    for _ in 1..cores() {
        listeners.push(listen(address)?);
    }
    announce(&listeners[0])?;
    let counter = Arc::new(Counter::default());
    let loops = listeners.into_iter().map(|listener| {
        let counter = Arc::clone(&counter);
        thread::spawn(move || serve(EventLoop::new(listener)?, &counter))
    });
    for thread in loops.collect::<Vec<_>>() {
        thread.join().expect("a loop does not panic")?;
    }
    Ok(())
}

fn serve(event_loop: EventLoop, counter: &Counter) -> io::Result<()> {
    event_loop.run(|_, request| Some(request.respond(|| counter.add())))
}
