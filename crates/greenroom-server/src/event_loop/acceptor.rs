use std::future::poll_fn;
use std::io;
use std::os::fd::AsRawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::{Instant, sleep, timeout};

use super::accept_policy::AcceptPolicy;
use super::announced::begin_announced;
#[cfg(feature = "tls")]
use super::handshakes::begin_handshake;
use super::{Loop, Permit, Pressure, TICK, tasks};
use crate::app::App;
use crate::connection::{Connection, Outcome, message};
use crate::drain::Phase;
use crate::handover;
#[cfg(feature = "tls")]
use crate::listen::Security;
use crate::listen::{Accepted, Fault, Listener};

/// Connections accepted before the others of the loop get a turn.
const BATCH: usize = 64;
/// The time after which a batch ends: the first requests of its connections are served at once.
const BATCH_LASTS: Duration = Duration::from_millis(1);
/// The same while the loop is behind, by half and by the whole of what is allowed. A connection
/// that is not accepted waits in the system's queue and costs nothing, where one connection more
/// makes all others wait longer. Some are accepted all the same, or nobody could ask how the server
/// is.
pub(super) const BATCH_RAISED: usize = 16;
const BATCH_OVER: usize = 1;
/// New connections rejected before the others of the loop get a turn.
const REFUSED_MAX: usize = 512;
/// Divisor of a loop's time for rejecting new connections: at most a tenth. A rejection costs
/// nearly what a short response costs, and more of them would only take the place of responses.
const REFUSING_DIVISOR: u32 = 10;
/// First and longest pause after descriptors or memory ran out.
const BACKOFF_MIN: Duration = Duration::from_millis(50);
const BACKOFF_MAX: Duration = Duration::from_secs(1);

/// Accepts connections until the server drains; then those that were already waiting.
pub(super) async fn accept<A: App>(
    home: Rc<Loop<A>>,
    listener: AsyncFd<Listener>,
) -> io::Result<()> {
    let mut phase = home.told.clone();
    let mut backoff = BACKOFF_MIN;
    let mut policy = AcceptPolicy::new(&home.settings.limits);
    let mut more_wait = false;
    let mut refuses_from = Instant::now();
    loop {
        let mut ready = tokio::select! {
            biased;
            _ = phase.wait_for(|phase| *phase != Phase::Serving) => break,
            ready = listener.readable() => ready?,
        };
        if home.permits.balance.is_full() && !somebody_waits(listener.get_ref()) {
            ready.clear_ready();
            continue;
        }
        make_room(&home).await;
        let began = Instant::now();
        let accepted = if more_wait && began >= refuses_from {
            let refused = refuse_late(&home, listener.get_ref(), &mut policy, began);
            let now = Instant::now();
            refuses_from = now + (now - began) * (REFUSING_DIVISOR - 1);
            refused
        } else {
            Ok(())
        };
        let accepted =
            accepted.and_then(|()| accept_batch(&home, listener.get_ref(), kept_max(&home)));
        let accepted = accepted.map(|_accepted| ());
        more_wait = accepted.is_ok();
        match accepted {
            Ok(()) => {
                backoff = BACKOFF_MIN;
                tokio::task::yield_now().await;
            }
            Err(Fault::WouldBlock) => {
                policy.note_empty_queue(Instant::now());
                ready.clear_ready();
            }
            Err(Fault::OfTheConnection) => {}
            Err(Fault::Exhausted(error)) => {
                let evicted = home.registry().evict_idle();
                tracing::warn!(%error, evicted, "cannot accept; pausing");
                sleep(backoff).await;
                backoff = (2 * backoff).min(BACKOFF_MAX);
            }
            Err(Fault::OfTheListener(error)) => return Err(error),
        }
    }
    // What waits where the next version listens, waits for that.
    if !listener.get_ref().is_taken() {
        accept_rest(&home, listener.get_ref()).await;
    }
    Ok(())
}

/// Accepts what was waiting when the drain began: no more than the queue can have held, or clients
/// that come back as fast as they are served would keep the server for ever.
async fn accept_rest<A: App>(home: &Rc<Loop<A>>, listener: &Listener) {
    let mut left = usize::from(home.settings.limits.backlog);
    while left > 0 {
        if home.permits.balance.is_full() || *home.told.borrow() == Phase::Ending {
            return;
        }
        left = match accept_batch(home, listener, BATCH) {
            Ok(accepted) => left.saturating_sub(accepted.max(1)),
            Err(Fault::OfTheConnection) => left - 1,
            Err(_) => return,
        };
        tokio::task::yield_now().await;
    }
}

#[expect(
    deprecated,
    reason = "its successor is unsafe for the sake of types whose descriptor changes; ours is fixed"
)]
pub(super) fn watched<S: AsRawFd>(socket: S) -> io::Result<AsyncFd<S>> {
    AsyncFd::with_interest(socket, Interest::READABLE)
}

/// Polls the listener for a connection to accept. That it was ready need not mean so: at the limit,
/// the batch before ends without having found the queue empty.
fn somebody_waits(listener: &Listener) -> bool {
    let mut polled = [PollFd::new(listener, PollFlags::IN)];
    poll(&mut polled, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}

/// At the limit of connections, waits until one has ended. The idle ones are asked to.
async fn make_room<A: App>(home: &Loop<A>) {
    // The loop's own phase changes only when its listeners are done.
    while home.permits.balance.is_full() && *home.told.borrow() == Phase::Serving {
        if home.registry().evict_idle() == 0 {
            home.permits.balance.want_room(home.index);
        }
        // Another loop's connection may be the one that ends: look again each tick.
        let _elapsed = timeout(TICK, home.permits.released.notified()).await;
    }
}

/// Returns the number of new connections that the loop keeps before its others get a turn.
fn kept_max<A: App>(home: &Loop<A>) -> usize {
    match home.meter.pressure() {
        Pressure::None => BATCH,
        Pressure::Raised => BATCH_RAISED,
        Pressure::Over => BATCH_OVER,
    }
}

/// Accepts connections, and returns how many; an error is that of the one behind them.
fn accept_batch<A: App>(
    home: &Rc<Loop<A>>,
    listener: &Listener,
    kept_max: usize,
) -> Result<usize, Fault> {
    let (mut accepted, mut kept, began) = (0, 0, Instant::now());
    while accepted < BATCH {
        if kept == kept_max || home.permits.balance.is_full() {
            break;
        }
        kept += usize::from(place(home, listener.accept()?, listener.alone));
        accepted += 1;
        if began.elapsed() > BATCH_LASTS {
            break;
        }
    }
    Ok(accepted)
}

/// Gives a new connection its loop; `true` if that is ours.
fn place<A: App>(home: &Rc<Loop<A>>, accepted: Accepted, spread: bool) -> bool {
    let chosen = home.permits.balance.choose(home.index, spread);
    let ours = chosen == home.index;
    if ours {
        begin(home, accepted);
    } else {
        pass_on(home, accepted, chosen);
    }
    ours
}

/// Rejects the connections that have waited too long, and places the first that has not.
fn refuse_late<A: App>(
    home: &Rc<Loop<A>>,
    listener: &Listener,
    policy: &mut AcceptPolicy,
    now: Instant,
) -> Result<(), Fault> {
    let time_max = home.settings.limits.loop_lag_max / REFUSING_DIVISOR;
    for _ in 0..REFUSED_MAX {
        if now.elapsed() > time_max {
            break;
        }
        let accepted = listener.accept()?;
        let waited = accepted.waited();
        if waited.is_none_or(|waited| !policy.is_rejected(waited, now)) {
            place(home, accepted, listener.alone);
            break;
        }
        home.meter.count_rejected();
        accepted.refuse(home.settings.rejections.busy());
    }
    Ok(())
}

/// Has another loop serve a connection. It counts as that loop's from now on, or all of a batch
/// would go to the loop that had the fewest when the batch began.
fn pass_on<A: App>(home: &Rc<Loop<A>>, accepted: Accepted, chosen: usize) {
    let balance = &home.permits.balance;
    balance.add(chosen);
    if let Err(refused) = home.others[chosen].try_send(accepted) {
        // That loop has a full inbox, or ended; ours is as good.
        balance.remove(chosen);
        begin(home, refused.into_inner());
    }
}

/// Serves a connection that another loop passed on, and so counted as ours.
pub(super) fn take_over<A: App>(home: &Rc<Loop<A>>, accepted: Accepted) {
    home.permits.balance.remove(home.index);
    begin(home, accepted);
}

/// Begins to serve a connection. A panic here is the end of that connection, not of its listener.
pub(super) fn begin<A: App>(home: &Rc<Loop<A>>, accepted: Accepted) {
    if accepted.is_proxied {
        return begin_announced(home, accepted);
    }
    #[cfg(feature = "tls")]
    if let (Security::Tls, Some(tls)) = (accepted.security, &home.settings.tls) {
        return begin_handshake(home, tls, accepted);
    }
    let peer = accepted.info.peer;
    let served = catch_unwind(AssertUnwindSafe(|| serve_at_once(home, accepted)));
    if let Err(panic) = served {
        let panic = message(panic.as_ref());
        tracing::error!(panic, ?peer, "serving a connection panicked; closing it");
    }
}

/// Serves a connection for as long as it need not wait, and has it wait as a task of its own.
fn serve_at_once<A: App>(home: &Rc<Loop<A>>, mut accepted: Accepted) {
    let Some(permit) = permit_of(home, &mut accepted) else {
        return accepted.refuse(home.settings.rejections.too_many());
    };
    let service = home.app.connect(&accepted.info);
    let mut connection = Connection::new(Rc::clone(home), service, accepted, permit);
    let mut idle = Context::from_waker(Waker::noop());
    match connection.poll_served(&mut idle) {
        Poll::Ready(outcome) => settle(home, outcome),
        Poll::Pending => match connection.register() {
            Ok(()) => {
                tokio::task::spawn_local(serve(connection));
            }
            Err(error) => tracing::warn!(%error, "cannot register a connection; closing it"),
        },
    }
}

/// Returns the connection's place in the count; `None` if its address has too many.
pub(super) fn permit_of<A: App>(home: &Loop<A>, accepted: &mut Accepted) -> Option<Permit> {
    if let Some(permit) = accepted.permit.take() {
        return Some(permit);
    }
    let address = accepted.info.peer.map(|peer| peer.ip());
    let place = home.addresses.connect(address);
    let place = place.inspect_err(|_| home.meter.count_declined("address_connections"));
    Some(home.permits.acquire(place.ok()?))
}

/// Serves a connection to its end. Not an `async fn`: that would keep room for its argument beside
/// the connection, for as long as that lives.
fn serve<A: App>(connection: Connection<A>) -> impl Future<Output = ()> {
    let mut connection = Some(connection);
    poll_fn(move |cx| {
        let served = connection.as_mut().expect("it is polled until it is ready");
        let outcome = ready!(served.poll_served(cx));
        if let Some(home) = connection.take().map(Connection::into_home) {
            settle(&home, outcome);
        }
        Poll::Ready(())
    })
}

/// Starts the server that takes a connection over, if there is one.
fn settle<A: App>(home: &Rc<Loop<A>>, outcome: Outcome<A>) {
    if let Outcome::HandOver(handed) = outcome {
        tasks::spawn(handover::serve(Rc::clone(home), *handed));
    }
}
