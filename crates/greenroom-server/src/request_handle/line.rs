use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;

use atomic_waker::AtomicWaker;
use greenroom_http::{FieldNames, NotInformational, informational};
use http::{HeaderMap, StatusCode};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::drain::Phase;
use crate::informational::UNSENT_BYTES_MAX;
use crate::settings::Settings;
use crate::{Draining, InformationalError};

/// State that a loop lends to all of its handlers while it polls them.
#[derive(Debug)]
pub(crate) struct Lent {
    /// Tells of the server's phase.
    pub(crate) tell: watch::Sender<Phase>,
    settings: Arc<Settings>,
}

impl Lent {
    pub(crate) fn new(settings: Arc<Settings>) -> Self {
        Self {
            tell: watch::Sender::new(Phase::Serving),
            settings,
        }
    }
}

/// State that a connection shares with the handles of its requests. Made for the first handle, used
/// by those of later requests while that one is kept, and gone with the last.
#[derive(Debug)]
pub(crate) struct Line {
    told: watch::Receiver<Phase>,
    settings: Arc<Settings>,
    /// Somebody asked for the notice of a drain.
    is_notified: AtomicBool,
    due: Mutex<Due>,
    /// The connection's task, woken when there is something for it to send.
    connection: AtomicWaker,
}

/// Informational responses to be sent ahead of the response that is due.
#[derive(Debug)]
struct Due {
    /// The number of the request under way, so that a handle of an earlier one sends nothing for
    /// it.
    request: u64,
    is_open: bool,
    unsent: Vec<u8>,
}

impl Line {
    /// For a connection with a request under way.
    pub(crate) fn new(lent: &Lent, takes_informational: bool) -> Arc<Self> {
        Arc::new(Self {
            told: lent.tell.subscribe(),
            settings: Arc::clone(&lent.settings),
            is_notified: AtomicBool::new(false),
            due: Mutex::new(Due {
                request: 0,
                is_open: takes_informational,
                unsent: Vec::new(),
            }),
            connection: AtomicWaker::new(),
        })
    }

    /// Begins the next request.
    pub(crate) fn begin(&self, takes_informational: bool) {
        let mut due = self.due.lock();
        due.request += 1;
        due.is_open = takes_informational;
    }

    /// Ends the request, with a response or without.
    pub(crate) fn end(&self) {
        let mut due = self.due.lock();
        due.is_open = false;
        due.unsent = Vec::new();
    }

    /// Takes what is to be sent before what follows in `out`, and has the connection woken for
    /// more.
    pub(crate) fn take(&self, connection: &Waker, out: &mut Vec<u8>) {
        // Registered before the look, or what is sent in between would wait for another reason to
        // wake.
        self.connection.register(connection);
        out.append(&mut self.due.lock().unsent);
    }

    /// The same for the last time: the response follows.
    pub(crate) fn take_last(&self, out: &mut Vec<u8>) {
        let mut due = self.due.lock();
        due.is_open = false;
        out.append(&mut due.unsent);
    }

    /// Returns `true` if a handler ends its WebSocket itself when the server drains.
    pub(crate) fn is_notified(&self) -> bool {
        self.is_notified.load(Ordering::Relaxed)
    }

    pub(super) fn notice(&self) -> Draining {
        self.is_notified.store(true, Ordering::Relaxed);
        Draining::new(self.told.clone())
    }

    pub(super) fn attached(&self) -> Option<&Arc<dyn Any + Send + Sync>> {
        self.settings.attached.as_ref()
    }

    pub(super) fn request(&self) -> u64 {
        self.due.lock().request
    }

    pub(super) fn send(
        &self,
        request: u64,
        status: StatusCode,
        headers: &HeaderMap,
        names: Option<&FieldNames>,
    ) -> Result<(), InformationalError> {
        let mut due = self.due.lock();
        if !due.is_open || due.request != request {
            return Err(InformationalError::Now);
        }
        if due.unsent.len() >= UNSENT_BYTES_MAX {
            return Err(InformationalError::TooMuch);
        }
        informational(status, headers, names, &mut due.unsent)
            .map_err(|NotInformational(status)| InformationalError::Status(status))?;
        drop(due);
        self.connection.wake();
        Ok(())
    }
}
