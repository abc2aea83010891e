use std::net::SocketAddr;

use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::rig::Reins;
use super::{Ending, PATIENCE, Wire};

/// What was seen of a server, in order.
pub(crate) type Log = Vec<String>;

/// A client of one server under test.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) address: SocketAddr,
    pub(crate) log: Log,
    reins: Reins,
    stop: Option<oneshot::Sender<()>>,
}

impl Client {
    pub(super) fn new(address: SocketAddr, reins: Reins, stop: oneshot::Sender<()>) -> Self {
        Self {
            address,
            log: Log::new(),
            reins,
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
        self.reins.release();
    }

    /// Awaits what the application tells, and logs it.
    pub(crate) async fn note(&mut self) -> Result<(), Ending> {
        match timeout(PATIENCE, self.reins.note()).await {
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

    /// Tells the server to shut down.
    pub(crate) fn shut_down(&mut self) {
        if let Some(stop) = self.stop.take() {
            // A server that ended by itself is found out elsewhere.
            let _gone = stop.send(());
        }
    }

    /// Ends what this client holds up: what is left is the log.
    pub(super) fn end(mut self) -> Log {
        self.reins.open();
        self.shut_down();
        self.log
    }
}
