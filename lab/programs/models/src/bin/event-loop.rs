//! One thread for everything: it waits for all sockets and timers at once, and does the work of
//! each request itself, one after the other. The counter needs no lock.

use models::{CONNECTIONS_MAX, EventLoop, Model, announce, listen};

fn main() -> anyhow::Result<()> {
    let model = Model {
        about: "Event loop: one thread for all connections",
        limits: &[("connections; more are closed", CONNECTIONS_MAX)],
    };
    let listener = listen(model.address())?;
    announce(&listener)?;
    let mut counter = 0;
    EventLoop::new(listener)?.run(|_, request| {
        Some(request.respond(|| {
            counter += 1;
            counter
        }))
    })?;
    Ok(())
}
