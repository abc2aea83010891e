//! Connections of QUIC whose handshake is over.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use h3::error::Code;
use tokio::sync::mpsc;

use super::{Loop, tasks};
use crate::app::App;
use crate::connection::message;
use crate::handover::http3::{self, Quic};
use crate::quic::Shaken;

/// Serves connections until no more are to be expected: the server drains, and the last handshake
/// that had begun before is over.
pub(super) async fn receive<A: App>(home: Rc<Loop<A>>, mut inbox: mpsc::Receiver<Shaken>) {
    while let Some(shaken) = inbox.recv().await {
        take_over(&home, shaken);
    }
}

/// Serves a connection that was counted as ours by the endpoint.
fn take_over<A: App>(home: &Rc<Loop<A>>, shaken: Shaken) {
    home.permits.balance.remove(home.index);
    let peer = shaken.info.peer;
    let served = catch_unwind(AssertUnwindSafe(|| begin(home, shaken)));
    if let Err(panic) = served {
        let panic = message(panic.as_ref());
        tracing::error!(panic, ?peer, "serving a connection panicked; closing it");
    }
}

fn begin<A: App>(home: &Rc<Loop<A>>, shaken: Shaken) {
    let Shaken { connection, info } = shaken;
    let Ok(place) = home.addresses.connect(info.peer.map(|peer| peer.ip())) else {
        home.meter.count_declined("address_connections");
        return http3::close(&connection, Code::H3_EXCESSIVE_LOAD);
    };
    let quic = Quic {
        connection,
        service: home.app.connect(&info),
        peer: info.peer,
        permit: home.permits.acquire(place),
    };
    tasks::spawn(http3::serve(Rc::clone(home), quic));
}
