//! The exchange of a process for its next version, without a lost request.
//!
//! The version that serves starts its program anew, over a pair of sockets sends it all listening
//! sockets as descriptors, and goes on serving. The next version loads its application, and says
//! that it is ready; only then the first one leaves the sockets to it, and drains. What waits in
//! the queue of a socket stays there throughout. The messages, from the first version (>) and from
//! the next (<), are
//!
//! ```text
//! > sockets …  > end   a line for each descriptor: server, origin, what is spoken there, number
//!                      among equal ones, address as it was named; and the upgrades of before
//! < ready …            all is loaded, all loops could accept; and which sockets are of no use
//! > go                 the first one starts no new upgrade and kills nobody from now on
//! < serving            the process number is written down, the loops accept; the first one drains
//! > datagrams          the first one does not read its UDP sockets any more (with HTTP/3)
//! < failed …           instead of any of the above: the reason
//! ```
//!
//! A next version that fails, ends, or is late leaves the first one as it was.

mod channel;
mod handed;
mod history;
mod manager;
mod outcome;
mod predecessor;
mod program;
mod signal;
mod status;
mod store;
mod successor;
mod surroundings;

use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::drain::Phase;
use crate::{Address, Handle, InheritedSocket};
use channel::Channel;
use handed::Label;
pub(crate) use handed::{Handed, Kind, Named};
use history::History;
pub(crate) use manager::stops;
pub use outcome::UpgradeOutcome;
use predecessor::Predecessor;
use program::Program;
pub use signal::{upgrade_marker, upgrade_on_signal};
pub use status::{
    DrainingVersion, UpgradeProgram, UpgradeRecord, UpgradeResult, UpgradeState, UpgradeStatus,
    UpgradeWay,
};
use store::Store;

/// Time in which loops close their listeners, once the next version serves.
const LISTENERS_TIMEOUT: Duration = Duration::from_secs(1);
/// The interval in which a condition is looked at.
const LOOK: Duration = Duration::from_millis(2);

/// The variable in which Perl's `start_server` passes listening sockets on.
pub(crate) const STARTER: &str = "SERVER_STARTER_PORT";

/// The message by which a version leaves its UDP sockets to the next one.
const DATAGRAMS: &str = "datagrams";

/// The server of a process that is no admin server.
const MAIN: &str = "main";

/// The exchange of this process for its next version, without a lost request: what the version
/// before handed over, and what the next one gets. Clones are the same.
///
/// Servers that [take part](crate::ServerBuilder::upgrades) hand over their listening sockets. The
/// page [Upgrades](https://github.com/greenroom-rs/greenroom/blob/main/docs/upgrades.md) tells what
/// happens when.
#[derive(Clone)]
pub struct Upgrades {
    shared: Arc<Shared>,
    part: &'static str,
}

type Step = Box<dyn FnOnce() -> io::Result<()> + Send>;

pub(super) struct Shared {
    program: Program,
    /// The version before, until this one serves.
    predecessor: Mutex<Option<Predecessor>>,
    parts: Mutex<Vec<Weak<Part>>>,
    files: Mutex<Vec<Arc<Handed>>>,
    /// The work to be done before the first connection is accepted.
    steps: Mutex<Vec<Step>>,
    refusal: Mutex<Option<String>>,
    is_under_way: AtomicBool,
    /// The thread of the upgrade that was begun last.
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Connections may be accepted.
    opened: watch::Sender<bool>,
    /// This process is the one that serves.
    on_duty: watch::Sender<bool>,
    /// The version before does not read its UDP sockets any more.
    released: watch::Sender<bool>,
    /// Servers of this process that read UDP sockets.
    #[cfg(feature = "http3")]
    readers: AtomicUsize,
    /// The channel to the next version, which sees it closed when this one has ended.
    successor: Mutex<Option<Channel>>,
    store: Store,
    history: History,
    /// SIGUSR2 begins upgrades.
    is_signalled: AtomicBool,
    /// The reason why they never will be.
    fault: Mutex<Option<String>>,
}

/// The upgrades of this process, which was started once.
static OF_PROCESS: Mutex<Option<Upgrades>> = Mutex::new(None);

impl Upgrades {
    /// Returns the upgrades of this process. The first call takes what the version before hands
    /// over, and so belongs to the beginning of a program: it finds out, too, by which path the
    /// program was started.
    ///
    /// # Errors
    ///
    /// If the version before does not hand over as it should, or the system does not say which
    /// program this is.
    pub fn of_process() -> io::Result<Self> {
        let mut of_process = OF_PROCESS.lock();
        if let Some(upgrades) = &*of_process {
            return Ok(upgrades.clone());
        }
        let predecessor = Predecessor::find()?;
        manager::check()?;
        let history = History::new(predecessor.as_ref().and_then(Predecessor::told));
        let (opened, _) = watch::channel(predecessor.is_none());
        let (released, _) = watch::channel(predecessor.is_none());
        let shared = Shared {
            program: Program::of_process()?,
            predecessor: Mutex::new(predecessor),
            parts: Mutex::default(),
            files: Mutex::default(),
            steps: Mutex::default(),
            refusal: Mutex::default(),
            is_under_way: AtomicBool::new(false),
            thread: Mutex::default(),
            opened,
            on_duty: watch::channel(false).0,
            released,
            #[cfg(feature = "http3")]
            readers: AtomicUsize::new(0),
            successor: Mutex::default(),
            store: Store::default(),
            history,
            is_signalled: AtomicBool::new(false),
            fault: Mutex::default(),
        };
        let upgrades = Self {
            shared: Arc::new(shared),
            part: MAIN,
        };
        *of_process = Some(upgrades.clone());
        Ok(upgrades)
    }

    /// Returns the same for another server of the process, whose sockets go to the server of the
    /// next version that has the same name. Names have no spaces.
    #[must_use]
    pub fn named(&self, part: &'static str) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            part,
        }
    }

    /// Returns `true` while this process has a version before it, which serves.
    #[must_use]
    pub fn is_next_version(&self) -> bool {
        self.shared.predecessor.lock().is_some()
    }

    /// Tells the version before why this process does not take over. Does nothing if there is
    /// none, or it has been told.
    pub fn fail(&self, reason: &str) {
        if let Some(predecessor) = self.shared.predecessor.lock().take() {
            tracing::error!(
                reason,
                serving = predecessor.pid(),
                "this version does not take over; the one before goes on serving"
            );
            predecessor.fail(reason);
        }
    }

    /// Returns whether this process is the one that serves, and tells of each change: for work of
    /// one version alone. It is `true` once all loops accept, and the version before, if there is
    /// one, has stepped back; `false` from just before a next version may accept; and `true` again
    /// if that one fails after all.
    #[must_use]
    pub fn on_duty(&self) -> watch::Receiver<bool> {
        self.shared.on_duty.subscribe()
    }

    /// Refuses upgrades from now on, for `reason`.
    pub fn refuse(&self, reason: impl Into<String>) {
        *self.shared.refusal.lock() = Some(reason.into());
    }

    /// Has `step` done when this process may serve, before it accepts its first connection: at
    /// once, or when the version before steps back. If it fails there, that one goes on serving.
    ///
    /// # Errors
    ///
    /// That of `step`, if it is done at once.
    pub fn before_serving(
        &self,
        step: impl FnOnce() -> io::Result<()> + Send + 'static,
    ) -> io::Result<()> {
        if !self.is_next_version() {
            return step();
        }
        self.shared.steps.lock().push(Box::new(step));
        Ok(())
    }

    /// Hands an open file over, too, by a name of its own.
    ///
    /// # Errors
    ///
    /// If too many descriptors are open.
    pub fn hand_over_file(&self, name: &str, file: &File) -> io::Result<()> {
        let handed = Handed::new(self.label(Kind::File, Named::only(name.to_owned())), file)?;
        self.shared.files.lock().push(handed);
        Ok(())
    }

    /// Takes the file that the version before handed over by this name.
    #[must_use]
    pub fn take_file(&self, name: &str) -> Option<File> {
        let named = Named::only(name.to_owned());
        let mut files = self.take_exactly(Kind::File, &named);
        files.pop().map(File::from)
    }

    /// Takes the sockets that the starter of the first version had passed on, as systemd does. A
    /// server that [takes part](crate::ServerBuilder::upgrades) serves them by itself if nobody
    /// else has taken them.
    ///
    /// # Errors
    ///
    /// If one of them cannot be listened on.
    pub fn take_inherited(&self) -> io::Result<Vec<InheritedSocket>> {
        let passed = self.take_passed()?.into_iter();
        Ok(passed.map(|(socket, _)| socket).collect())
    }

    /// Has the service manager keep the sockets of TCP addresses that are named, in its store of
    /// descriptors, and takes back what a process before this one had put there: descriptors that
    /// were passed on with a name [of ours](Self::is_stored). So if this process is killed, nobody
    /// who waits at a socket is refused.
    ///
    /// Belongs before the first server is bound. Sockets are stored only if the manager offers it
    /// (`FDSTORE`) to this very process, which must pass on here whatever it gets: connections at a
    /// stored socket that nobody accepts from would wait in vain. Default: none are.
    ///
    /// # Errors
    ///
    /// If `FDSTORE` is not a number.
    pub fn store(&self, kept: Vec<(String, OwnedFd)>) -> io::Result<()> {
        self.shared.store.begin(kept, self.is_next_version())
    }

    /// Returns `true` for a name (`LISTEN_FDNAMES`) of a socket that is for [`store`](Self::store).
    #[must_use]
    pub fn is_stored(name: &str) -> bool {
        store::is_ours(name)
    }

    /// Gives up stored sockets that keep others from `address`; `true` if there are any.
    pub(crate) fn free(&self, address: &Address) -> bool {
        match address {
            Address::Tcp(address) => self.shared.store.free_port(address.port()),
            Address::Unix(_) => false,
        }
    }

    pub(crate) fn take_passed(&self) -> io::Result<Vec<(InheritedSocket, bool)>> {
        let mut predecessor = self.shared.predecessor.lock();
        let passed = predecessor.as_mut().map(|each| each.take_passed(self.part));
        let passed = passed.into_iter().flatten();
        passed
            .map(|(socket, is_proxied)| Ok((socket.try_into()?, is_proxied)))
            .collect()
    }

    /// Takes the listening sockets that were bound for the same.
    pub(crate) fn take(&self, named: &Named) -> Vec<OwnedFd> {
        let taken = self.take_exactly(Kind::Bound, named);
        if !taken.is_empty() {
            return taken;
        }
        let label = self.label(Kind::Bound, named.clone());
        self.shared.store.take(&label)
    }

    /// Takes the listening sockets of an address, as it was named, whatever was spoken there.
    pub(crate) fn take_any(&self, named: &Named) -> Vec<OwnedFd> {
        let mut predecessor = self.shared.predecessor.lock();
        let taken = predecessor.as_mut();
        taken.map_or_else(Vec::new, |each| each.take_any(self.part, &named.asked))
    }

    #[cfg(feature = "http3")]
    pub(crate) fn take_udp(&self, address: &Address) -> Option<OwnedFd> {
        let named = Named::only(address.to_string());
        self.take_exactly(Kind::Udp, &named).pop()
    }

    /// Takes the ways to the versions that drain and read of this address: each with the key of
    /// its connection ids.
    #[cfg(feature = "http3")]
    pub(crate) fn take_routes(&self, address: &str) -> Vec<(String, OwnedFd)> {
        let mut predecessor = self.shared.predecessor.lock();
        let taken = predecessor.as_mut();
        taken.map_or_else(Vec::new, |each| each.take_routes(self.part, address))
    }

    fn take_exactly(&self, kind: Kind, named: &Named) -> Vec<OwnedFd> {
        let mut predecessor = self.shared.predecessor.lock();
        let taken = predecessor.as_mut();
        let label = self.label(kind, named.clone());
        taken.map_or_else(Vec::new, |each| each.take(&label))
    }

    fn label(&self, kind: Kind, named: Named) -> Label {
        Label {
            part: self.part.to_owned(),
            kind,
            named,
        }
    }

    /// Hands a socket over that was asked for so.
    pub(crate) fn hand_over(
        &self,
        kind: Kind,
        named: Named,
        socket: impl std::os::fd::AsFd,
    ) -> io::Result<Arc<Handed>> {
        Handed::new(self.label(kind, named), socket)
    }

    /// Adds a server, with as many loops.
    pub(crate) fn add(
        &self,
        handle: Handle,
        sockets: Vec<Arc<Handed>>,
        loops: usize,
        timeout: Duration,
    ) -> Arc<Part> {
        let part = Arc::new(Part {
            shared: Arc::clone(&self.shared),
            name: self.part,
            handle,
            sockets,
            timeout,
            loops_missing: AtomicUsize::new(loops),
            turns: (0..loops).map(|_| AtomicU64::new(0)).collect(),
        });
        #[cfg(feature = "http3")]
        if part.sockets.iter().any(|each| each.label.kind == Kind::Udp) {
            self.shared.readers.fetch_add(1, Ordering::Relaxed);
        }
        self.shared.parts.lock().push(Arc::downgrade(&part));
        part
    }

    /// Begins an upgrade, which goes on in a thread of its own; the log tells the outcome. It is
    /// refused while another one is under way, while the server drains or has not begun to serve,
    /// and where the next version would not live: as process 1, under `start_server`, and under
    /// systemd without `Type=notify` or `notify-reload`.
    pub fn begin(&self) {
        if let Err(reason) = self.shared.may_begin() {
            return self.shared.refuse(reason);
        }
        self.shared.history.begin();
        let shared = Arc::clone(&self.shared);
        let body = move || {
            manager::upgrades();
            let outcome = successor::exchange(&shared);
            shared.settle(&outcome);
        };
        // Locked before it starts, so that the server's end finds it.
        let mut place = self.shared.thread.lock();
        let started = thread::Builder::new()
            .name("upgrade".to_owned())
            .spawn(body);
        match started {
            Ok(thread) => *place = Some(thread),
            Err(error) => {
                self.shared.is_under_way.store(false, Ordering::Release);
                let reason = format!("no thread can be started: {error}");
                self.shared.settle(&UpgradeOutcome::Failed { reason });
            }
        }
    }
}

/// A server that takes part.
#[derive(Debug)]
pub(crate) struct Part {
    shared: Arc<Shared>,
    name: &'static str,
    handle: Handle,
    sockets: Vec<Arc<Handed>>,
    timeout: Duration,
    /// Loops that could not accept yet.
    loops_missing: AtomicUsize,
    /// The turns of each loop.
    turns: Box<[AtomicU64]>,
}

impl Part {
    /// Returns what each loop passes before it accepts.
    pub(crate) fn gate(self: &Arc<Self>, index: usize) -> Gate {
        Gate {
            part: Arc::clone(self),
            index,
        }
    }

    /// Completes when the version before does not read its UDP sockets any more.
    #[cfg(feature = "http3")]
    pub(crate) async fn released(&self) {
        let mut released = self.shared.released.subscribe();
        // Its sender is never dropped.
        let _released = released.wait_for(|is_released| *is_released).await;
    }

    /// Tells the next version that it may read the UDP sockets, once no server of this process
    /// does. To be called once.
    #[cfg(feature = "http3")]
    pub(crate) fn release(&self) {
        if self.shared.readers.fetch_sub(1, Ordering::AcqRel) > 1 {
            return;
        }
        if let Some(successor) = &*self.shared.successor.lock() {
            // If it has ended, nobody waits.
            let _told = successor.send(DATAGRAMS, &[]);
        }
    }

    /// Tells the version before that this process does not take over.
    pub(crate) fn fail(&self, reason: &str) {
        let upgrades = Upgrades {
            shared: Arc::clone(&self.shared),
            part: self.name,
        };
        upgrades.fail(reason);
    }

    /// Waits until no upgrade is under way: one that a drain has called off must not leave a
    /// process behind. That takes ten seconds at most.
    pub(crate) fn wait_for_upgrade(&self) {
        let thread = self.shared.thread.lock().take();
        // One that panicked has been reported.
        let _ended = thread.map(JoinHandle::join);
    }

    /// Returns why connections will never be accepted.
    pub(crate) fn fault(&self) -> Option<String> {
        self.shared.fault.lock().clone()
    }
}

/// The place where a loop waits until it may accept.
pub(crate) struct Gate {
    part: Arc<Part>,
    index: usize,
}

impl Gate {
    /// Says that a loop could accept, and waits until it may; `false` if the server ends before.
    pub(crate) async fn pass(self, mut told: watch::Receiver<Phase>) -> bool {
        let Self { part, index } = self;
        tokio::task::spawn_local(manager::turn(Arc::clone(&part), index));
        if part.loops_missing.fetch_sub(1, Ordering::AcqRel) == 1 {
            part.shared.look_whether_ready();
        }
        let mut opened = part.shared.opened.subscribe();
        tokio::select! {
            biased;
            opened = opened.wait_for(|is_open| *is_open) => opened.is_ok(),
            _ = told.wait_for(|phase| *phase != Phase::Serving) => false,
        }
    }
}

impl Shared {
    fn parts(&self) -> Vec<Arc<Part>> {
        self.parts.lock().iter().filter_map(Weak::upgrade).collect()
    }

    fn handed(&self) -> Vec<Arc<Handed>> {
        let parts = self.parts();
        let sockets = parts.iter().flat_map(|part| part.sockets.iter().cloned());
        sockets.chain(self.files.lock().iter().cloned()).collect()
    }

    fn timeout(&self) -> Duration {
        let parts = self.parts();
        let main = parts.iter().find(|part| part.name == MAIN);
        main.or(parts.first())
            .map_or(Duration::ZERO, |part| part.timeout)
    }

    /// Returns `true` while all servers serve.
    fn is_serving(&self) -> bool {
        let parts = self.parts();
        !parts.is_empty() && parts.iter().all(|part| part.handle.is_serving())
    }

    fn is_ready(&self) -> bool {
        let parts = self.parts();
        let is_ready = |part: &Arc<Part>| part.loops_missing.load(Ordering::Acquire) == 0;
        !parts.is_empty() && parts.iter().all(is_ready)
    }

    /// If all loops of all servers could accept, takes over from the version before, if there is
    /// one, in a thread of its own: its reply must not be waited for on a loop.
    fn look_whether_ready(self: &Arc<Self>) {
        if !self.is_ready() {
            return;
        }
        let Some(predecessor) = self.predecessor.lock().take() else {
            self.store.put(&self.handed());
            self.on_duty.send_replace(true);
            return manager::serves(self);
        };
        let shared = Arc::clone(self);
        let body = move || {
            let pid = predecessor.pid();
            if let Err(error) = shared.take_over(predecessor) {
                let reason = format!("cannot take over from process {pid}: {error}");
                tracing::error!("{reason}");
                *shared.fault.lock() = Some(reason);
                for part in shared.parts() {
                    part.handle.abort();
                }
            }
        };
        let started = thread::Builder::new()
            .name("upgrade".to_owned())
            .spawn(body);
        if let Err(error) = started {
            let reason = format!("no thread can be started: {error}");
            *self.fault.lock() = Some(reason);
            self.parts().iter().for_each(|part| part.handle.abort());
        }
    }

    fn take_over(self: &Arc<Self>, mut predecessor: Predecessor) -> io::Result<()> {
        let pid = predecessor.pid();
        // While it waits for this process, its number is nobody else's.
        let end = predecessor.end();
        predecessor.ready()?;
        for step in self.steps.lock().drain(..) {
            if let Err(error) = step() {
                predecessor.fail(&error.to_string());
                return Err(error);
            }
        }
        self.history.took_over(pid.unsigned_abs());
        self.opened.send_replace(true);
        self.on_duty.send_replace(true);
        tracing::info!(from = pid, "took over; the version before drains");
        manager::serves(self);
        predecessor.serves(|message| {
            if message == DATAGRAMS {
                self.released.send_replace(true);
            }
        });
        tracing::debug!(pid, "the version before has left all its sockets");
        self.released.send_replace(true);
        // The manager hears this process, now that it is the service.
        self.store.put(&self.handed());
        let has_ended = end.wait();
        self.history.drained(has_ended);
        Ok(())
    }

    fn is_signalled(&self) -> bool {
        self.is_signalled.load(Ordering::Relaxed)
    }

    fn set_signalled(&self) {
        self.is_signalled.store(true, Ordering::Relaxed);
    }

    fn refusal(&self) -> Option<String> {
        self.refusal.lock().clone().or_else(surroundings::refusal)
    }

    fn refuse(&self, reason: String) {
        tracing::error!(reason, "no upgrade is begun");
        let outcome = UpgradeOutcome::Refused { reason };
        self.history.settle(&outcome);
        outcome.publish();
    }

    fn may_begin(&self) -> Result<(), String> {
        if let Some(reason) = self.refusal() {
            return Err(reason);
        }
        if !self.is_serving() {
            return Err("it is draining".to_owned());
        }
        if self.is_under_way.swap(true, Ordering::AcqRel) {
            return Err("another upgrade is under way".to_owned());
        }
        Ok(())
    }

    /// Waits until nothing is accepted here any more.
    fn wait_for_listeners(&self) {
        let begin = Instant::now();
        let is_open = |handed: &Arc<Handed>| handed.is_listener() && handed.is_open();
        while self.handed().iter().any(is_open) && begin.elapsed() < LISTENERS_TIMEOUT {
            thread::sleep(LOOK);
        }
    }

    /// Waits until the loops accept; `false` if they do not in time.
    fn wait_until_ready(&self) -> bool {
        let begin = Instant::now();
        while !(self.is_ready() && *self.opened.borrow()) {
            if begin.elapsed() >= self.timeout() || !self.is_serving() {
                return false;
            }
            thread::sleep(LOOK);
        }
        true
    }

    fn settle(&self, outcome: &UpgradeOutcome) {
        self.history.settle(outcome);
        match outcome {
            UpgradeOutcome::Serves { pid } => {
                tracing::info!(pid, "the next version serves; draining");
                self.store.leave(&self.handed());
                manager::settled(outcome);
                for part in self.parts() {
                    part.handle.hand_over();
                }
                // Whoever hears of it and connects is served by the next version.
                self.wait_for_listeners();
                outcome.publish();
            }
            UpgradeOutcome::Failed { reason } | UpgradeOutcome::Refused { reason } => {
                tracing::error!(reason, "the next version does not serve; this one goes on");
                manager::settled(outcome);
                self.is_under_way.store(false, Ordering::Release);
                outcome.publish();
            }
        }
    }
}

impl fmt::Debug for Upgrades {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Upgrades")
            .field("part", &self.part)
            .field("shared", &self.shared)
            .finish()
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Shared")
            .field("program", &self.program)
            .field("is_under_way", &self.is_under_way)
            .finish_non_exhaustive()
    }
}
