use std::net::SocketAddr;

use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::rig::RigControls;
use super::{Ending, PATIENCE, Wire};

/// The events that a client saw of a server, in order.
pub(crate) type Log = Vec<String>;

/// A client of one server under test.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) address: SocketAddr,
    pub(crate) log: Log,
    controls: RigControls,
    stop: Option<oneshot::Sender<()>>,
}

impl Client {
    pub(super) fn new(
        address: SocketAddr,
        controls: RigControls,
        stop: oneshot::Sender<()>,
    ) -> Self {
        Self {
            address,
            log: Log::new(),
            controls,
            stop: Some(stop),
        }
    }

    pub(crate) async fn connect(&self) -> Wire {
        Wire::new(self.open().await)
    }

    pub(crate) async fn open(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        stream
    }

    /// Lets the application go on.
    pub(crate) fn release(&self) {
        self.controls.release();
    }

    /// Awaits a note of the application, and logs it.
    pub(crate) async fn note(&mut self) -> Result<(), Ending> {
        match timeout(PATIENCE, self.controls.note()).await {
            Ok(Some(note)) => {
                self.log.push(format!("the application tells: {note}"));
                Ok(())
            }
            _ => Err(Ending::Silent),
        }
    }

    pub(crate) fn say(&mut self, text: impl Into<String>) {
        self.log.push(text.into());
    }

    /// Starts the shutdown of the server.
    pub(crate) fn shut_down(&mut self) {
        if let Some(stop) = self.stop.take() {
            // A server that ended by itself is noticed elsewhere.
            let _gone = stop.send(());
        }
    }

    /// Lets everything go on that this client holds up, and returns the log.
    pub(super) fn end(mut self) -> Log {
        self.controls.open();
        self.shut_down();
        self.log
    }
}
