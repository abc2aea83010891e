//! The adaptor to NATS.

mod error;
mod feed;
mod link;
mod replay;
mod servers;
mod settings;
mod signals;
mod subject;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_nats::ServerAddr;
use parking_lot::Mutex;
use tokio::runtime::Runtime;

use crate::core::Core;
use crate::meters::Meters;
use crate::remote::{self, AnyRemote, Ended, Remote, Server};
use crate::{NatsStatus, PAYLOAD_BYTES_MAX, ReplayStatus};

use error::LinkError;
use replay::Position;
pub use settings::{NatsSettings, ReplaySettings};
use subject::Names;

/// The name of the thread that a bus through NATS runs on.
const THREAD_NAME: &str = "bus-nats";

/// State shared by the handles of a bus and its thread.
pub(crate) struct Nats {
    settings: NatsSettings,
    names: Names,
    pub(crate) remote: Remote<Names>,
    payload_bytes_max: AtomicUsize,
    /// The server connected to last.
    server: Mutex<Option<String>>,
    /// The servers that the last one named beside those of the settings.
    discovered: Mutex<Vec<ServerAddr>>,
    /// The place in the stream up to which messages were received.
    position: Mutex<Option<Position>>,
}

impl Nats {
    pub(crate) fn new(settings: NatsSettings) -> Self {
        let names = Names::new(&settings.prefix);
        Self {
            remote: Remote::new(Server::Nats, settings.remote.clone(), names.clone()),
            names,
            payload_bytes_max: AtomicUsize::new(PAYLOAD_BYTES_MAX),
            server: Mutex::default(),
            discovered: Mutex::default(),
            position: Mutex::default(),
            settings,
        }
    }

    /// Returns the longest payload that the server takes, or the one before it took.
    pub(crate) fn payload_bytes_max(&self) -> usize {
        self.payload_bytes_max.load(Ordering::Relaxed)
    }

    pub(crate) fn status(&self, meters: &Meters) -> NatsStatus {
        let replay = self.settings.replay.as_ref();
        NatsStatus {
            remote: self.remote.status(meters),
            server: self.server.lock().clone(),
            replay: replay.map(|settings| ReplayStatus {
                stream: settings.stream.clone(),
                sequence: self.position.lock().map(|position| position.sequence),
                replayed: meters.replayed.read(),
            }),
        }
    }
}

pub(crate) fn start(core: Arc<Core>, nats: Arc<Nats>) -> io::Result<()> {
    remote::choose_cryptography();
    remote::start(THREAD_NAME, core, nats, |nats| &nats.remote, connect)
}

/// Runs one connection, with a runtime of its own: the client's tasks, which would go on and
/// connect again by themselves, end with it.
fn connect(_: &Runtime, core: &Arc<Core>, nats: &Arc<Nats>) -> Result<Ended, LinkError> {
    let runtime = remote::runtime().map_err(LinkError::Runtime)?;
    let outcome = runtime.block_on(link::run(Arc::clone(core), Arc::clone(nats)));
    // A look-up of a host's name may take longer than anybody wants to wait.
    runtime.shutdown_background();
    outcome
}
