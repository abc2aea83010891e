//! The threads of the loops.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

use tokio::runtime::{Builder as Runtime, LocalOptions};
use tokio::sync::mpsc;

use crate::Error;
use crate::app::{App, LoopWatch};
use crate::drain::Aborted;
use crate::event_loop::{Hooks, Member, run};

/// Starts a loop on a thread of its own, which tells how it ended.
pub(crate) fn start<A: App>(
    app: A,
    member: Member,
    tell: mpsc::Sender<Result<Vec<Aborted>, Error>>,
) -> Result<(), Error> {
    let index = member.index;
    let name = member.settings.loop_name(index);
    let failed = move |source| Error::Start { index, source };
    // Boxed, so that the code of threads is compiled once, and not for each application.
    let body: Box<dyn FnOnce() + Send> = Box::new(move || {
        let run = AssertUnwindSafe(|| run_to_end(app, member).map_err(failed));
        let ended = catch_unwind(run).unwrap_or(Err(Error::LoopPanicked { index }));
        // Nobody listens if the server was dropped.
        let _told = tell.blocking_send(ended);
    });
    thread::Builder::new()
        .name(name)
        .spawn(body)
        .map_err(failed)?;
    Ok(())
}

fn run_to_end<A: App>(app: A, mut member: Member) -> io::Result<Vec<Aborted>> {
    let hooks = Hooks::default();
    let mut builder = Runtime::new_current_thread();
    hooks.install(&mut builder);
    let runtime = builder.enable_all().build_local(LocalOptions::default())?;
    let entered = runtime.enter();
    member.watch = app.watch_loop(&member.settings.loop_name(member.index));
    drop(entered);
    member.watch.iter().for_each(|watch| hooks.connect(watch));
    // Also if the loop panics: the status keeps the watch.
    let _ended = EndsWith(member.watch.clone());
    let cut = runtime.block_on(run(app, member));
    // Blocking work of requests that were aborted must not hold up the end.
    runtime.shutdown_background();
    cut
}

/// Tells the watch of a loop that it has ended, when this is dropped.
struct EndsWith(Option<Arc<dyn LoopWatch>>);

impl Drop for EndsWith {
    fn drop(&mut self) {
        self.0.iter().for_each(|watch| watch.ends());
    }
}
