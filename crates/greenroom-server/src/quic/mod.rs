//! QUIC (RFC 9000), for HTTP/3: the endpoints and their handshakes.
//!
//! A server has one thread for QUIC. It reads and sends the datagrams of all connections, encrypts
//! and decrypts them, and shakes hands, so that none of that holds up a loop; a connection whose
//! handshake is over is served on a loop like any other. There is one socket for each address and
//! not one for each loop: the system would give the datagrams of a client that comes to another
//! address to another socket.

mod accepting;
mod config;
mod message;
mod routes;
mod socket;
mod sockets;

use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use http::HeaderValue;
use quinn::{Endpoint, EndpointConfig, TokioRuntime};
use tokio::runtime::{Builder as Runtime, LocalOptions};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::drain::Phase;
use crate::event_loop::Balance;
use crate::listen::{Listener, Security};
use crate::settings::Settings;
use crate::upgrade::{Handed, Part, Upgrades};
use crate::{Address, ConnectionInfo, Error};
use accepting::Accepting;
pub(crate) use config::{
    Config, INPUT_BYTES_MAX, OUTPUT_BYTES_CEILING, PROTOCOL, STREAM_BYTES_MAX, streams_max,
};
use socket::Socket;
pub(crate) use sockets::listen;
use sockets::{Bound, Next, Reading};

/// Time that clients have to take the news of the end of their connections.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// Time for which clients remember that there is HTTP/3: a day.
const ALTERNATIVE_SECONDS: u32 = 86_400;
/// Ports that are tried where the system chooses one.
const PORTS_TRIED: usize = 16;
/// Connections that wait in a loop's inbox.
const INBOX_MAX: usize = 1_024;

/// A connection whose handshake is over.
#[derive(Debug)]
pub(crate) struct Shaken {
    pub(crate) connection: quinn::Connection,
    pub(crate) info: ConnectionInfo,
}

/// The sockets of a server for HTTP/3, bound to the addresses of its listeners with TLS.
#[derive(Debug)]
pub(crate) struct Quic {
    sockets: Vec<Bound>,
    config: Config,
}

impl Quic {
    /// Binds what `settings` ask for, and has responses tell of it.
    pub(crate) fn bind(
        bound: &[Vec<Listener>],
        settings: &mut Settings,
        mut upgrades: Option<(&Upgrades, &mut Vec<Arc<Handed>>)>,
    ) -> Result<Option<Self>, Error> {
        if !settings.http3 {
            return Ok(None);
        }
        let firsts = bound.iter().filter_map(|of_address| of_address.first());
        let secure = firsts.filter(|listener| listener.security == Security::Tls);
        let addresses = secure.filter_map(|listener| match listener.address {
            Address::Tcp(address) if !listener.is_proxied => Some(address),
            _ => None,
        });
        let addresses: Vec<SocketAddr> = addresses.collect();
        let (Some(first), Some(tls)) = (addresses.first(), &settings.tls) else {
            return Err(Error::Http3WithoutTls);
        };
        let config = Config::new(tls, &settings.limits)?;
        let alternative = format!("h3=\":{}\"; ma={ALTERNATIVE_SECONDS}", first.port());
        settings.alternative = HeaderValue::from_str(&alternative).ok();
        let mut bound_udp = Vec::new();
        for address in addresses {
            bound_udp.push(sockets::socket(address, tls, &mut upgrades)?);
        }
        Ok(Some(Self {
            sockets: bound_udp,
            config,
        }))
    }

    /// Returns the endpoints, and the inbox of each loop.
    pub(crate) fn begin(
        self,
        settings: &Arc<Settings>,
        balance: &Arc<Balance>,
        loops: usize,
        told: watch::Receiver<Phase>,
        part: Option<Arc<Part>>,
    ) -> (Endpoints, Vec<mpsc::Receiver<Shaken>>) {
        let (inboxes, received) = (0..loops).map(|_| mpsc::channel(INBOX_MAX)).unzip();
        let endpoints = Endpoints {
            sockets: self.sockets,
            config: self.config,
            settings: Arc::clone(settings),
            balance: Arc::clone(balance),
            inboxes,
            told,
            part,
        };
        (endpoints, received)
    }
}

/// The endpoints of a server, and what they need to know of its loops.
pub(crate) struct Endpoints {
    sockets: Vec<Bound>,
    config: Config,
    settings: Arc<Settings>,
    balance: Arc<Balance>,
    /// The inboxes of the loops, by index.
    inboxes: Vec<mpsc::Sender<Shaken>>,
    told: watch::Receiver<Phase>,
    /// There if sockets are handed over to the next version.
    part: Option<Arc<Part>>,
}

/// Endpoints that run, until this is dropped or awaited.
pub(crate) struct Running {
    end: oneshot::Sender<()>,
    ended: oneshot::Receiver<()>,
}

/// Ends endpoints whose connections have ended.
pub(crate) async fn end(running: Option<Running>) {
    if let Some(running) = running {
        drop(running.end);
        // An error means that they have ended.
        let _ended = running.ended.await;
    }
}

impl Endpoints {
    /// Serves on a thread of their own.
    pub(crate) fn start(self) -> io::Result<Running> {
        let (end, ending) = oneshot::channel();
        let (ended, end_seen) = oneshot::channel();
        let body = move || {
            let built = Runtime::new_current_thread()
                .enable_all()
                .build_local(LocalOptions::default());
            match built {
                Ok(runtime) => runtime.block_on(self.serve(ending)),
                Err(error) => tracing::error!(%error, "cannot serve HTTP/3"),
            }
            // Nobody waits if the server was dropped.
            let _told = ended.send(());
        };
        thread::Builder::new().name("quic".to_owned()).spawn(body)?;
        Ok(Running {
            end,
            ended: end_seen,
        })
    }

    /// Serves on the calling thread.
    pub(crate) fn start_local(self) -> Running {
        let (end, ending) = oneshot::channel();
        let (ended, end_seen) = oneshot::channel();
        tokio::task::spawn_local(async move {
            self.serve(ending).await;
            let _told = ended.send(());
        });
        Running {
            end,
            ended: end_seen,
        }
    }

    /// Waits until the version before has left the datagrams; `false` if the server drains before.
    async fn may_read(&self, part: &Part) -> bool {
        let mut told = self.told.clone();
        tokio::select! {
            biased;
            () = part.released() => true,
            _ = told.wait_for(|phase| *phase != Phase::Serving) => false,
        }
    }

    async fn serve(mut self, mut ending: oneshot::Receiver<()>) {
        let part = self.part.take();
        let is_taken_over = self.sockets.iter().any(|socket| socket.is_taken_over);
        if let Some(part) = part.as_deref().filter(|_| is_taken_over)
            && !self.may_read(part).await
        {
            // No connection has come, and none will.
            drop(self);
            tokio::select! {
                () = part.released() => part.release(),
                _ = ending => {}
            }
            return;
        }
        let sockets = std::mem::take(&mut self.sockets);
        let server = self.config.current();
        let opened: io::Result<Vec<_>> = sockets
            .into_iter()
            .map(|bound| Opened::new(bound, &server))
            .collect();
        let opened = match opened {
            Ok(opened) => opened,
            Err(error) => return tracing::error!(%error, "cannot serve HTTP/3"),
        };
        let told = self.told.clone();
        let accepting = Rc::new(Accepting::new(self));
        let mut serving = JoinSet::new();
        for each in &opened {
            serving.spawn_local(Rc::clone(&accepting).serve(each.endpoint.clone()));
        }
        tokio::select! {
            biased;
            // It is never sent, but dropped.
            _ = &mut ending => {}
            () = leave(told, &opened, part.as_deref(), &accepting) => {}
        }
        let idle = async {
            for Opened { endpoint, .. } in &opened {
                endpoint.close(0_u32.into(), b"");
                endpoint.wait_idle().await;
            }
        };
        let _elapsed = timeout(CLOSE_TIMEOUT, idle).await;
    }
}

/// An endpoint that runs.
struct Opened {
    endpoint: Endpoint,
    socket: Arc<Socket>,
    next: Option<Next>,
}

impl Opened {
    fn new(bound: Bound, server: &quinn::ServerConfig) -> io::Result<Self> {
        let (socket, key, next) = bound.open()?;
        let socket = Arc::new(socket);
        let mut config = EndpointConfig::default();
        config.cid_generator(move || Box::new(key.generator()));
        let endpoint = Endpoint::new_with_abstract_socket(
            config,
            Some(server.clone()),
            Arc::<Socket>::clone(&socket),
            Arc::new(TokioRuntime),
        )?;
        Ok(Self {
            endpoint,
            socket,
            next,
        })
    }
}

/// Leaves, once the server drains: the datagrams to the next version, if there is one, and no new
/// connections to the loops. Does not complete.
async fn leave(
    mut told: watch::Receiver<Phase>,
    opened: &[Opened],
    part: Option<&Part>,
    accepting: &Rc<Accepting>,
) {
    // Not kept: it is a lock of whoever tells.
    drop(told.wait_for(|phase| *phase != Phase::Serving).await);
    // Whether there is a next version the sockets know: a signal may have come behind it.
    let mut is_left = false;
    if let Some(part) = part {
        let mut may_be_released = true;
        for Opened { socket, next, .. } in opened {
            let reading = next.as_ref().map(|next| next.take_over(socket));
            is_left |= reading == Some(Reading::Left);
            may_be_released &= reading != Some(Reading::Owed);
        }
        if may_be_released {
            part.release();
        }
    }
    accepting
        .finish(opened.iter().map(|each| &each.endpoint), is_left)
        .await;
    pending::<()>().await;
}
