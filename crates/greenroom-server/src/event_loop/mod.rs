//! A loop: one thread, one runtime, and the connections that it serves.

mod accept_policy;
mod acceptor;
mod announced;
mod balance;
mod bulk;
mod distribute;
#[cfg(feature = "tls")]
mod handshakes;
mod lag;
mod permits;
mod registry;
mod run;
#[cfg(feature = "http3")]
mod shaken;
pub(crate) mod tasks;
mod watching;
mod wheel;

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use greenroom_http::Context;
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::{Instant, sleep};

pub(crate) use balance::Balance;
pub(crate) use bulk::{Bulk, Ticket};
pub(crate) use distribute::Loops;
pub use lag::{LoopStatus, Pressure};
pub(crate) use lag::{Record, Roster};
pub(crate) use permits::{Permit, Permits};
pub(crate) use registry::{Key, Notice};
pub(crate) use run::{Member, run};
pub(crate) use watching::Hooks;
pub(crate) use wheel::{Clock, NEVER, Tick};

use crate::access::Teller;
use crate::addresses::Addresses;
use crate::app::App;
use crate::connection::{Exchange, Scratch};
use crate::drain::{Aborted, Phase};
use crate::handover::InFlight;
use crate::listen::Accepted;
use crate::memory::Memory;
use crate::request_handle::Lent;
use crate::request_metrics::Requests;
use crate::settings::Settings;
use lag::Meter;
use registry::Registry;

/// Deadlines and the date are kept to this precision.
pub(crate) const TICK: Duration = Duration::from_millis(250);

const TICKS_PER_SECOND: u32 = 1_000_000_000 / TICK.subsec_nanos();

/// The first tick that is no sooner than `time` after any moment of the tick `since`. What began
/// late in that tick waits for `time` exactly, and what began early for up to a tick longer; a
/// `time` that is no whole number of ticks counts as the next that is.
pub(crate) fn tick_after(since: Tick, time: Duration) -> Tick {
    // By seconds, as no machine divides 128 bits at once: this is done for each request.
    let of_seconds = time.as_secs().saturating_mul(TICKS_PER_SECOND.into());
    let of_rest = time.subsec_nanos().div_ceil(TICK.subsec_nanos());
    let ticks = of_seconds.saturating_add(u64::from(of_rest) + 1);
    let ticks = Tick::try_from(ticks).unwrap_or(NEVER);
    since.saturating_add(ticks).min(NEVER - 1)
}

/// Exchanges kept for the next requests of the loop.
const SPARE_EXCHANGES_MAX: usize = 64;

/// The state that the connections of a loop share. Only its thread ever touches it.
pub(crate) struct Loop<A: App> {
    pub(crate) index: usize,
    pub(crate) settings: Arc<Settings>,
    pub(crate) context: RefCell<Context>,
    /// The server's phase, for tasks that must wait for it.
    pub(crate) told: watch::Receiver<Phase>,
    /// Tells handlers, to whom it is lent at each poll: not before the loop itself has come to the
    /// phase, or the response of a handler that ends at once would still promise to keep its
    /// connection.
    pub(crate) lent: Rc<Lent>,
    pub(crate) permits: Arc<Permits>,
    pub(crate) in_flight: Arc<InFlight>,
    pub(crate) meter: Meter,
    pub(crate) bulk: Rc<Bulk>,
    pub(crate) teller: Teller,
    /// There if requests are counted by their routes.
    pub(crate) requests: Option<Rc<Requests>>,
    pub(crate) addresses: Arc<Addresses>,
    pub(crate) memory: Arc<Memory>,
    app: A,
    phase: Cell<Phase>,
    ending: Notify,
    others: Vec<mpsc::Sender<Accepted>>,
    registry: RefCell<Registry>,
    scratch: Cell<Option<Box<Scratch>>>,
    spare: RefCell<Vec<Pin<Box<Exchange<A>>>>>,
    clock: Clock,
    cut: RefCell<Vec<Aborted>>,
    unannounced_warned_at: Cell<Option<Instant>>,
    #[cfg(feature = "tls")]
    handshakes: handshakes::Handshakes,
}

impl<A: App> Loop<A> {
    fn new(app: A, member: &Member) -> Rc<Self> {
        let limits = &member.settings.limits;
        let balance = &member.balance;
        Rc::new(Self {
            index: member.index,
            settings: Arc::clone(&member.settings),
            context: RefCell::new(Context::new(limits.http(), SystemTime::now())),
            told: member.told.clone(),
            lent: Rc::new(Lent::new(Arc::clone(&member.settings))),
            permits: Arc::new(Permits::new(member.index, Arc::clone(balance))),
            in_flight: Arc::default(),
            meter: Meter::new(Arc::clone(&member.record), limits, member.watch.clone()),
            bulk: Rc::default(),
            teller: Teller::default(),
            requests: member.settings.request_metrics.then(Requests::new),
            addresses: Arc::clone(&member.addresses),
            memory: Arc::clone(&member.memory),
            app,
            phase: Cell::new(Phase::Serving),
            ending: Notify::new(),
            others: member.others.clone(),
            registry: RefCell::default(),
            scratch: Cell::new(None),
            spare: RefCell::default(),
            clock: Clock::default(),
            cut: RefCell::default(),
            unannounced_warned_at: Cell::new(None),
            #[cfg(feature = "tls")]
            handshakes: handshakes::Handshakes::default(),
        })
    }

    pub(crate) fn phase(&self) -> Phase {
        self.phase.get()
    }

    /// Completes when what is still under way is aborted.
    pub(crate) async fn ended(&self) {
        let ending = self.ending.notified();
        if self.phase() != Phase::Ending {
            ending.await;
        }
    }

    /// Completes when the server has drained for [`drain_grace`](crate::Limits::drain_grace): for a
    /// connection that was accepted meanwhile, when it has waited for as long.
    async fn grace_over(&self) {
        let mut told = self.told.clone();
        // Not kept: it is a lock of whoever tells.
        drop(told.wait_for(|phase| *phase != Phase::Serving).await);
        sleep(self.settings.limits.drain_grace).await;
    }

    pub(crate) fn now(&self) -> Tick {
        self.clock.now()
    }

    /// The loop's own time, for what does not know its application.
    pub(crate) fn clock(&self) -> Clock {
        self.clock.clone()
    }

    /// Returns the time since the tick `since`.
    pub(crate) fn age(&self, since: Tick) -> Duration {
        TICK * (self.now() - since)
    }

    pub(crate) fn registry(&self) -> std::cell::RefMut<'_, Registry> {
        self.registry.borrow_mut()
    }

    /// The loop's buffers, for the connection that runs. A nested call would get others.
    #[expect(
        clippy::unnecessary_box_returns,
        reason = "its place is kept: it is moved out and in for each turn of a connection"
    )]
    pub(crate) fn take_scratch(&self) -> Box<Scratch> {
        self.scratch.take().unwrap_or_else(|| {
            let head_bytes_max = self.settings.limits.head_bytes_max;
            Box::new(Scratch::new(head_bytes_max))
        })
    }

    pub(crate) fn give_scratch(&self, scratch: Box<Scratch>) {
        self.scratch.set(Some(scratch));
    }

    pub(crate) fn take_exchange(&self) -> Pin<Box<Exchange<A>>> {
        let spare = self.spare.borrow_mut().pop();
        spare.unwrap_or_else(|| Box::pin(Exchange::new()))
    }

    pub(crate) fn give_exchange(&self, exchange: Pin<Box<Exchange<A>>>) {
        let mut spare = self.spare.borrow_mut();
        if spare.len() < SPARE_EXCHANGES_MAX {
            spare.push(exchange);
        }
    }

    pub(crate) fn cut(&self, cut: Aborted) {
        self.cut.borrow_mut().push(cut);
    }

    /// Goes on to `phase`, and has every connection that waits see it.
    fn enter(&self, phase: Phase) {
        self.phase.set(phase);
        if phase == Phase::Ending {
            self.ending.notify_waiters();
        }
        self.lent.tell.send_replace(phase);
        self.registry().wake_all();
    }

    /// One tick of the loop's own time.
    fn tick(&self) {
        let now = self.clock.tick();
        self.context.borrow_mut().date.refresh(SystemTime::now());
        self.registry().turn(now);
        self.meter.tick();
        if self.permits.balance.is_room_wanted(self.index) {
            self.registry().evict_idle();
        }
    }
}
