//! The parts that the adaptors to servers share: what is to be subscribed to, what waits to be
//! published, and the connection's state.

mod channels;
mod outbox;
mod settings;

use std::fmt::Display;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustls::crypto::{CryptoProvider, ring};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::time::sleep;
use tracing::{debug, warn};

use crate::core::Core;
use crate::meters::Meters;
use crate::subscription::Receiver;
use crate::{ConnectionState, Pattern, RemoteStatus};

pub(crate) use channels::{Change, Channel, Channels, Kind, Naming};
pub(crate) use outbox::{Entry, Outbox};
pub(crate) use settings::{RemoteSettings, check_certificates, check_key, remote_settings};
pub use settings::{Server, SettingsError, WhileAway};

/// State shared by the handles of a bus and the thread that holds its connection.
pub(crate) struct Remote<N: Naming> {
    server: Server,
    pub(crate) settings: RemoteSettings,
    pub(crate) channels: Channels<N>,
    pub(crate) outbox: Outbox,
    state: watch::Sender<ConnectionState>,
    last_error: Mutex<Option<String>>,
    /// `true` once the last handle was dropped.
    has_ended: watch::Sender<bool>,
}

/// A [`Remote`], whatever its channels are.
pub(crate) trait AnyRemote: Send + Sync {
    /// Notes that a subscription is about to enter the table.
    fn enter(&self, pattern: &Pattern);

    /// Notes that a subscription is in the table.
    fn settle(&self, receiver: &Receiver);

    /// Notes that a subscription has left the table, or did not enter it.
    fn leave(&self, pattern: &Pattern);

    /// Ends the connection: the last handle was dropped.
    fn end(&self);

    fn outbox(&self) -> &Outbox;

    fn state(&self) -> &watch::Sender<ConnectionState>;

    fn status(&self, meters: &Meters) -> RemoteStatus;
}

/// The orderly end of a connection, as the bus has ended.
pub(crate) struct Ended;

impl<N: Naming> Remote<N> {
    pub(crate) fn new(server: Server, settings: RemoteSettings, naming: N) -> Self {
        Self {
            server,
            channels: Channels::new(naming),
            outbox: Outbox::new(&settings),
            state: watch::Sender::new(ConnectionState::Connecting),
            last_error: Mutex::default(),
            has_ended: watch::Sender::new(false),
            settings,
        }
    }

    /// Waits until the last handle is dropped.
    pub(crate) async fn ended(&self) {
        let mut has_ended = self.has_ended.subscribe();
        // The sender is in `self`, so the wait cannot fail.
        let _ = has_ended.wait_for(|has_ended| *has_ended).await;
    }

    pub(crate) fn come_up(&self) {
        self.outbox.come_back();
        self.state.send_replace(ConnectionState::Connected);
    }

    /// Connects, and connects again, until the bus ends. `connect` runs one connection, from the
    /// first try to its loss.
    fn keep<E: Display>(
        &self,
        runtime: &Runtime,
        core: &Core,
        mut connect: impl FnMut(&Runtime) -> Result<Ended, E>,
    ) {
        let _ending = Ending { remote: self, core };
        let mut delays = self.settings.delays();
        loop {
            let begin = Instant::now();
            // A panic ends a connection as a fault of the server does: all is done again on the
            // next.
            let outcome = catch_unwind(AssertUnwindSafe(|| connect(runtime)));
            let error = match outcome {
                Ok(Ok(Ended)) => return,
                Ok(Err(error)) => error.to_string(),
                Err(_) => "what keeps it panicked".to_owned(),
            };
            let longest = self.settings.backoff_max;
            if self.is_connected() && begin.elapsed() > longest {
                delays = self.settings.delays();
            }
            let delay = delays.next().unwrap_or(longest);
            self.note(core, &error, delay);
            if runtime.block_on(self.ends_within(delay)) {
                return;
            }
        }
    }

    async fn ends_within(&self, delay: Duration) -> bool {
        tokio::select! {
            biased;
            () = self.ended() => true,
            () = sleep(delay) => false,
        }
    }

    fn note(&self, core: &Core, error: &str, delay: Duration) {
        let before = self.last_error.lock().replace(error.to_owned());
        let (server, millis) = (self.server, delay.as_millis());
        if self.is_connected() {
            warn!(%error, retry_millis = millis, "the connection to {server} is lost");
            core.meters.connections_lost.add(1);
            self.go_away(core, ConnectionState::Away);
            return;
        }
        // Each reason once, such as a wrong password: not at every try.
        if before.as_deref() == Some(error) {
            debug!(%error, retry_millis = millis, "{server} cannot be reached");
        } else {
            warn!(%error, retry_millis = millis, "{server} cannot be reached");
        }
        self.channels.lost();
    }

    fn is_connected(&self) -> bool {
        *self.state.borrow() == ConnectionState::Connected
    }

    fn go_away(&self, core: &Core, state: ConnectionState) {
        self.state.send_replace(state);
        self.channels.lost();
        let given_up = self.outbox.go_away();
        core.meters.publish_failed.add(given_up as u64);
    }
}

impl<N: Naming> AnyRemote for Remote<N> {
    fn enter(&self, pattern: &Pattern) {
        self.channels.enter(pattern);
    }

    fn settle(&self, receiver: &Receiver) {
        self.channels.settle(receiver);
    }

    fn leave(&self, pattern: &Pattern) {
        self.channels.leave(pattern);
    }

    fn end(&self) {
        self.has_ended.send_replace(true);
    }

    fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    fn state(&self) -> &watch::Sender<ConnectionState> {
        &self.state
    }

    fn status(&self, meters: &Meters) -> RemoteStatus {
        let (publish_queue, publish_queue_bytes) = self.outbox.sizes();
        RemoteStatus {
            state: *self.state.borrow(),
            connections_lost: meters.connections_lost.read(),
            last_error: self.last_error.lock().clone(),
            subscribed: self.channels.live(),
            publish_queue,
            publish_queue_bytes,
            publish_failed: meters.publish_failed.read(),
        }
    }
}

/// Ends the bus also if a panic ends its thread, as one of the log's: then nobody waits for it in
/// vain.
struct Ending<'a, N: Naming> {
    remote: &'a Remote<N>,
    core: &'a Core,
}

impl<N: Naming> Drop for Ending<'_, N> {
    fn drop(&mut self) {
        self.core.end();
        self.remote.go_away(self.core, ConnectionState::Ended);
    }
}

/// Starts the thread of a bus. It ends with the bus.
///
/// It is a thread of its own, because a handler that holds up its event loop would hold up all
/// deliveries there, and its pings would be late for no fault of the server.
pub(crate) fn start<A, N: Naming, E: Display>(
    name: &str,
    core: Arc<Core>,
    adaptor: Arc<A>,
    remote: impl Fn(&A) -> &Remote<N> + Send + 'static,
    connect: impl Fn(&Runtime, &Arc<Core>, &Arc<A>) -> Result<Ended, E> + Send + 'static,
) -> io::Result<()>
where
    A: Send + Sync + 'static,
{
    let runtime = runtime()?;
    thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || {
            remote(&adaptor).keep(&runtime, &core, |runtime| connect(runtime, &core, &adaptor));
        })?;
    Ok(())
}

/// Chooses a provider of cryptography if the process has none. The clients use the process' choice,
/// and would panic if nothing is chosen and the program was built with more than one.
pub(crate) fn choose_cryptography() {
    if CryptoProvider::get_default().is_none() {
        // Another thread may have been faster.
        let _ = ring::default_provider().install_default();
    }
}

/// Builds a runtime that runs on the thread that waits for it.
pub(crate) fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}
