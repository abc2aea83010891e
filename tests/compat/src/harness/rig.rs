use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// The application's side of a channel to its client.
#[derive(Clone, Debug)]
pub(crate) struct Rig {
    gate: Arc<Semaphore>,
    notes: UnboundedSender<String>,
}

/// The client's side of a [`Rig`].
#[derive(Debug)]
pub(crate) struct RigControls {
    gate: Arc<Semaphore>,
    notes: UnboundedReceiver<String>,
}

pub(crate) fn pair() -> (Rig, RigControls) {
    let gate = Arc::new(Semaphore::new(0));
    let (sender, notes) = unbounded_channel();
    let rig = Rig {
        gate: Arc::clone(&gate),
        notes: sender,
    };
    (rig, RigControls { gate, notes })
}

impl Rig {
    /// Waits for the client to let one waiter go on.
    pub(crate) async fn released(&self) {
        self.gate.acquire().await.unwrap().forget();
    }

    /// Sends a note to the client.
    pub(crate) fn note(&self, text: impl Into<String>) {
        // A client that is gone compares no more.
        let _gone = self.notes.send(text.into());
    }
}

impl RigControls {
    /// Lets one waiter go on, now or when it comes.
    pub(crate) fn release(&self) {
        self.gate.add_permits(1);
    }

    /// Lets all waiters go on.
    pub(crate) fn open(&self) {
        self.gate.add_permits(10_000);
    }

    /// Returns the application's next note.
    pub(crate) async fn note(&mut self) -> Option<String> {
        self.notes.recv().await
    }
}
