use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use quinn::crypto::rustls::HandshakeData;
use quinn::{Connecting, Connection, Endpoint, Incoming};
use rustls::pki_types::CertificateDer;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::yield_now;
use tokio::time::timeout;

use super::{Config, Endpoints, Shaken};
use crate::addresses::{Owner, Place, Places};
use crate::drain::Phase;
use crate::event_loop::{Balance, Pressure};
use crate::settings::Settings;
use crate::{ConnectionInfo, TlsInfo};

/// Handshakes under way from which on a client must show first that it is where it says (RFC 9000,
/// 8.1.2): up to there a client gets its response one round trip sooner.
const UNVALIDATED_MAX: usize = 64;
/// Divisor of the handshakes at once for those of one address: an eighth.
const ADDRESS_SHARE: usize = 8;
/// The code with which a connection is closed for which there is no room (RFC 9114, 8.1:
/// `H3_EXCESSIVE_LOAD`).
const EXCESSIVE_LOAD: u32 = 0x107;
/// The name of the thread for QUIC where others have their loop's.
const LOOP: &str = "quic";

/// The handshakes of a server's endpoints.
pub(super) struct Accepting {
    config: RefCell<Config>,
    settings: Arc<Settings>,
    balance: Arc<Balance>,
    /// Those of the loops, by index; none once no connection is to be expected any more.
    inboxes: RefCell<Vec<mpsc::Sender<Shaken>>>,
    /// New connections that come during an exchange may be for no other version.
    is_open: Cell<bool>,
    told: watch::Receiver<Phase>,
    /// Handshakes under way, in all and by address.
    under_way: Cell<usize>,
    /// The last of them has ended.
    settled: Notify,
    places: Arc<Places>,
}

/// A handshake under way, until it is dropped.
struct Handshake {
    accepting: Rc<Accepting>,
    _place: Place,
}

impl Accepting {
    pub(super) fn new(endpoints: Endpoints) -> Self {
        let limits = &endpoints.settings.limits;
        Self {
            places: Places::new(limits.handshakes_max.div_ceil(ADDRESS_SHARE)),
            config: RefCell::new(endpoints.config),
            settings: endpoints.settings,
            balance: endpoints.balance,
            inboxes: RefCell::new(endpoints.inboxes),
            is_open: Cell::new(true),
            told: endpoints.told,
            under_way: Cell::new(0),
            settled: Notify::new(),
        }
    }

    /// Takes new connections; while the server drains, it refuses them.
    pub(super) async fn serve(self: Rc<Self>, endpoint: Endpoint) {
        while let Some(incoming) = endpoint.accept().await {
            self.consider(incoming, &endpoint);
            // Its first step was taken. What is ready beside it waits for one at most.
            yield_now().await;
        }
    }

    /// Takes what these endpoints may have read before the server drained, and gives the loops the
    /// connections whose handshakes are under way: nobody else will have them. What comes later is
    /// a stranger's, unless the next version, to which the reading `is_left`, knows better.
    pub(super) async fn finish(
        self: &Rc<Self>,
        endpoints: impl Iterator<Item = &Endpoint>,
        is_left: bool,
    ) {
        // An endpoint keeps no more of them, and while it is flooded there is always one.
        let incoming_max = self.settings.limits.handshakes_max;
        for endpoint in endpoints {
            for _ in 0..incoming_max {
                let Some(incoming) = waiting(endpoint).await else {
                    break;
                };
                self.consider(incoming, endpoint);
                yield_now().await;
            }
        }
        self.is_open.set(is_left);
        while self.under_way.get() > 0 {
            self.settled.notified().await;
        }
        self.is_open.set(false);
        self.inboxes.borrow_mut().clear();
    }

    /// Begins a handshake, if there is room for one. Who is refused knows at once, and comes by
    /// TCP, where those that are too many wait.
    fn consider(self: &Rc<Self>, incoming: Incoming, endpoint: &Endpoint) {
        match *self.told.borrow() {
            Phase::Serving => {}
            // It came before the exchange, or responds to a Retry from before: no other version
            // knows of it. What comes when all of these are served is a stranger's.
            Phase::HandingOver if self.is_open.get() => {}
            Phase::HandingOver | Phase::Draining | Phase::Ending => return incoming.refuse(),
        }
        if self.balance.is_full() {
            self.balance.want_room_of_all();
            return decline(incoming, "connections");
        }
        let least = self.balance.choose(0, true);
        if self.balance.pressure(least) == Pressure::Over {
            return decline(incoming, "loop_lag");
        }
        let under_way = self.under_way.get();
        if under_way >= self.settings.limits.handshakes_max {
            return decline(incoming, "handshakes");
        }
        if under_way >= UNVALIDATED_MAX && !incoming.remote_address_validated() {
            // It can be, since the address is not validated.
            let _sent = incoming.retry();
            return;
        }
        let peer = incoming.remote_address();
        let Ok(place) = self.places.take(Owner::of(peer.ip())) else {
            return decline(incoming, "handshakes");
        };
        let config = self.config.borrow_mut().current();
        match incoming.accept_with(config) {
            Ok(connecting) => {
                let handshake = Handshake::begin(self, place);
                let local = endpoint.local_addr().ok();
                tokio::task::spawn_local(handshake.complete(connecting, local));
            }
            Err(error) => tracing::debug!(%error, %peer, "a handshake failed"),
        }
    }

    /// Gives a connection to the loop that has the fewest.
    fn give(&self, shaken: Shaken) {
        if self.balance.is_full() {
            // Others have taken the room since its handshake began.
            self.balance.want_room_of_all();
            return close(&shaken.connection, "connections");
        }
        let chosen = self.balance.choose(0, true);
        // Counted first, as a connection that one loop passes on to another is.
        self.balance.add(chosen);
        let refused = match self.inboxes.borrow().get(chosen) {
            Some(inbox) => inbox.try_send(shaken).err().map(TrySendError::into_inner),
            None => Some(shaken),
        };
        if let Some(Shaken { connection, .. }) = refused {
            self.balance.remove(chosen);
            close(&connection, "loop_lag");
        }
    }
}

impl Handshake {
    fn begin(accepting: &Rc<Accepting>, place: Place) -> Self {
        accepting.under_way.set(accepting.under_way.get() + 1);
        Self {
            accepting: Rc::clone(accepting),
            _place: place,
        }
    }

    async fn complete(self, connecting: Connecting, local: Option<SocketAddr>) {
        let peer = connecting.remote_address();
        let time = self.accepting.settings.limits.handshake_timeout;
        match timeout(time, connecting).await {
            Ok(Ok(connection)) => {
                let info = info(&connection, local);
                self.accepting.give(Shaken { connection, info });
            }
            Ok(Err(error)) => tracing::debug!(%error, %peer, "a handshake failed"),
            Err(_elapsed) => tracing::debug!(%peer, "a handshake was not complete in time"),
        }
    }
}

impl Drop for Handshake {
    fn drop(&mut self) {
        let under_way = &self.accepting.under_way;
        under_way.set(under_way.get() - 1);
        if under_way.get() == 0 {
            self.accepting.settled.notify_one();
        }
    }
}

/// Returns a connection that an endpoint has read of already, if there is one.
async fn waiting(endpoint: &Endpoint) -> Option<Incoming> {
    let mut accepting = pin!(endpoint.accept());
    poll_fn(|cx| match accepting.as_mut().poll(cx) {
        Poll::Ready(incoming) => Poll::Ready(incoming),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

/// Refuses a connection, and counts it.
fn decline(incoming: Incoming, why: &'static str) {
    count_declined(why);
    incoming.refuse();
}

/// Closes a connection for which there is no room, and counts it.
fn close(connection: &Connection, why: &'static str) {
    count_declined(why);
    connection.close(EXCESSIVE_LOAD.into(), b"no loop takes it");
}

fn count_declined(why: &'static str) {
    metrics::counter!("greenroom_loop_declined_total", "loop" => LOOP, "reason" => why)
        .increment(1);
}

fn info(connection: &Connection, bound: Option<SocketAddr>) -> ConnectionInfo {
    let peer = connection.remote_address();
    let mut local = bound.unwrap_or_else(|| SocketAddr::from(([0, 0, 0, 0], 0)));
    if let Some(ip) = connection.local_ip() {
        local.set_ip(ip);
    }
    let mut info = ConnectionInfo::new(Some(peer), local.into());
    let agreed = connection.handshake_data();
    let agreed = agreed.and_then(|agreed| agreed.downcast::<HandshakeData>().ok());
    let shown = connection.peer_identity();
    let shown = shown.and_then(|shown| shown.downcast::<Vec<CertificateDer<'static>>>().ok());
    info.tls = Some(Arc::new(TlsInfo::of_quic(
        agreed.and_then(|agreed| agreed.server_name),
        shown.map(|shown| *shown).unwrap_or_default(),
    )));
    info
}
