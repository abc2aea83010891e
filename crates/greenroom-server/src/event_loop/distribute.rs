use std::sync::Arc;

use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

use super::{Balance, TICK};
use crate::drain::Phase;
use crate::listen::{Accepted, Acceptor};

/// All loops of a server, for the acceptors beside them.
#[derive(Clone, Debug)]
pub(crate) struct Loops {
    pub(crate) balance: Arc<Balance>,
    pub(crate) inboxes: Vec<mpsc::Sender<Accepted>>,
    pub(crate) told: watch::Receiver<Phase>,
}

impl Loops {
    /// Gives the loops what the acceptor accepts, until the server drains.
    pub(crate) async fn serve(mut self, mut acceptor: Box<dyn Acceptor>) {
        let mut told = self.told.clone();
        let drains = async move {
            // An error means that the server is gone.
            let _phase = told.wait_for(|phase| *phase != Phase::Serving).await;
        };
        tokio::select! {
            biased;
            () = drains => {}
            () = async {
                loop {
                    let accepted = acceptor.accept().await.into_accepted();
                    self.make_room().await;
                    self.give(accepted);
                }
            } => {}
        }
    }

    /// At the limit of connections, waits until one has ended. The idle ones are asked to.
    async fn make_room(&mut self) {
        while self.balance.is_full() {
            self.balance.want_room_of_all();
            sleep(TICK).await;
        }
    }

    /// Gives a connection to the loop that has the fewest, or to another that takes it.
    fn give(&self, mut accepted: Accepted) {
        let chosen = self.balance.choose(0, true);
        let (before, from) = self.inboxes.split_at(chosen);
        let indexes = (chosen..self.inboxes.len()).chain(0..chosen);
        for (index, inbox) in indexes.zip(from.iter().chain(before)) {
            // Counted first, as a connection that one loop passes on to another is.
            self.balance.add(index);
            match inbox.try_send(accepted) {
                Ok(()) => return,
                Err(refused) => {
                    self.balance.remove(index);
                    accepted = refused.into_inner();
                }
            }
        }
        tracing::warn!(peer = ?accepted.info.peer, "no loop takes a connection; closing it");
    }
}
