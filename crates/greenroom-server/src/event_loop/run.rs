use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::unix::AsyncFd;
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, yield_now};
use tokio::time::{sleep, timeout};

use super::acceptor::{BATCH_RAISED, accept, take_over, watched};
use super::{Balance, Loop, Pressure, Record, TICK, tasks};
use crate::addresses::Addresses;
use crate::app::{App, LoopWatch};
use crate::drain::{Aborted, Phase};
use crate::listen::{Accepted, Listener};
use crate::memory::Memory;
#[cfg(feature = "http3")]
use crate::quic::Shaken;
use crate::settings::Settings;
use crate::upgrade::Gate;

/// Time that aborted connections may take to end.
const ENDING_MAX: Duration = Duration::from_secs(1);

/// The state of a server that one loop starts with.
pub(crate) struct Member {
    pub(crate) index: usize,
    pub(crate) settings: Arc<Settings>,
    pub(crate) told: watch::Receiver<Phase>,
    pub(crate) balance: Arc<Balance>,
    pub(crate) addresses: Arc<Addresses>,
    pub(crate) memory: Arc<Memory>,
    pub(crate) record: Arc<Record>,
    pub(crate) listeners: Vec<Listener>,
    /// Connections that other loops accepted for this one.
    pub(crate) inbox: mpsc::Receiver<Accepted>,
    /// There if the server may have a version before it.
    pub(crate) gate: Option<Gate>,
    /// The inboxes of all loops, by index.
    pub(crate) others: Vec<mpsc::Sender<Accepted>>,
    pub(crate) watch: Option<Arc<dyn LoopWatch>>,
    /// Connections of HTTP/3, if it is served.
    #[cfg(feature = "http3")]
    pub(crate) shaken: Option<mpsc::Receiver<Shaken>>,
}

/// A loop that runs. Boxed, so that the runtime's code for it is compiled once, and not for each
/// application.
pub(crate) type Running = Pin<Box<dyn Future<Output = io::Result<Vec<Aborted>>>>>;

/// Serves until the server is drained, and returns the requests that were aborted.
///
/// Runs on the runtime of the calling thread, which must be a `LocalRuntime`.
pub(crate) fn run<A: App>(app: A, member: Member) -> Running {
    Box::pin(serve(app, member))
}

async fn serve<A: App>(app: A, mut member: Member) -> io::Result<Vec<Aborted>> {
    let home = Loop::new(app, &member);
    let listeners: io::Result<Vec<_>> = member.listeners.drain(..).map(watched).collect();
    let ticking = tasks::spawn(tick(Rc::clone(&home)));
    let turning = tasks::spawn(turn(Rc::clone(&home)));
    let probing = tasks::spawn(Rc::clone(&home).probe());
    let mut listeners = listeners?;
    if let Some(gate) = member.gate.take()
        && !gate.pass(member.told.clone()).await
    {
        // They are the version before's, and what waits there is.
        listeners.clear();
    }
    for listener in &mut listeners {
        listener.get_mut().own(member.settings.limits.untaken_max());
    }
    let accepting = listeners
        .into_iter()
        .map(|listener| tasks::spawn(accept_or_say(Rc::clone(&home), listener)));
    let accepting: Vec<_> = accepting.collect();
    #[cfg(feature = "http3")]
    let late = member.shaken.take().map(|inbox| {
        let receiving = super::shaken::receive(Rc::clone(&home), inbox);
        tasks::spawn(receiving)
    });
    #[cfg(not(feature = "http3"))]
    let late = None;
    receive(&home, &mut member).await;
    for task in accepting {
        if let Err(error) = task.await {
            tracing::error!(%error, "a listener's task failed");
        }
    }
    // Whoever has a connection for this loop from now on keeps it.
    member.inbox.close();
    while let Some(accepted) = member.inbox.recv().await {
        take_over(&home, accepted);
    }
    drain(&home, member.settings.limits.drain_deadline, late).await;
    ticking.abort();
    turning.abort();
    probing.abort();
    Ok(home.cut.take())
}

async fn accept_or_say<A: App>(home: Rc<Loop<A>>, listener: AsyncFd<Listener>) {
    let address = listener.get_ref().address.clone();
    if let Err(error) = accept(home, listener).await {
        tracing::error!(%error, %address, "a listener failed; its loop accepts no more there");
    }
}

async fn tick<A: App>(home: Rc<Loop<A>>) {
    loop {
        // Not an interval, which makes up for a late tick by a short one: a deadline that is
        // counted in ticks would come early, and a loop that stood still would find that its
        // clients are late.
        sleep(TICK).await;
        home.tick();
    }
}

async fn turn<A: App>(home: Rc<Loop<A>>) {
    home.bulk.run().await;
}

/// Serves what other loops accepted, until the server drains.
async fn receive<A: App>(home: &Rc<Loop<A>>, member: &mut Member) {
    for taken in 1_usize.. {
        let is_behind = home.meter.pressure() != Pressure::None;
        if is_behind && taken.is_multiple_of(BATCH_RAISED) {
            yield_now().await;
        }
        tokio::select! {
            biased;
            _ = member.told.wait_for(|phase| *phase != Phase::Serving) => return,
            Some(accepted) = member.inbox.recv() => take_over(home, accepted),
        }
    }
}

/// Waits until all connections have ended, those that come `late` too, and aborts those that have
/// not by the deadline.
async fn drain<A: App>(home: &Rc<Loop<A>>, deadline: Duration, mut late: Option<JoinHandle<()>>) {
    let begun = match *home.told.borrow() {
        Phase::HandingOver => Phase::HandingOver,
        _ => Phase::Draining,
    };
    home.enter(begun);
    let mut told = home.told.clone();
    let told_to_end = told.wait_for(|phase| *phase == Phase::Ending);
    let ended = async {
        if let Some(late) = &mut late {
            // One that panicked has been reported.
            let _ended = late.await;
        }
        emptied(home).await;
    };
    tokio::select! {
        () = ended => return,
        _ = told_to_end => {}
        () = sleep(deadline) => {}
    }
    if let Some(late) = &late {
        late.abort();
    }
    // Before they notice that they are aborted, and strike themselves out.
    home.cut.borrow_mut().extend(home.in_flight.aborted());
    home.enter(Phase::Ending);
    let _elapsed = timeout(ENDING_MAX, emptied(home)).await;
}

async fn emptied<A: App>(home: &Loop<A>) {
    while !home.permits.are_all_released() {
        // Another loop may count a connection as ours for a moment, and take it back unsaid.
        let _elapsed = timeout(TICK, home.permits.released.notified()).await;
    }
}
