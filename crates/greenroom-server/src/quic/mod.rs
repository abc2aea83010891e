//! QUIC (RFC 9000), for HTTP/3: the endpoints and their handshakes.
//!
//! A server has one thread for QUIC. It reads and sends the datagrams of all connections, encrypts
//! and decrypts them, and shakes hands, so that none of that holds up a loop; a connection whose
//! handshake is over is served on a loop like any other. There is one socket for each address and
//! not one for each loop: the system would give the datagrams of a client that comes to another
//! address to another socket.

mod accepting;
mod config;

use std::future::pending;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::rc::Rc;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use http::HeaderValue;
use quinn::{Endpoint, EndpointConfig, TokioRuntime};
use tokio::runtime::{Builder as Runtime, LocalOptions};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::drain::Phase;
use crate::event_loop::Balance;
use crate::listen::{self, Listener, Security};
use crate::settings::Settings;
use crate::upgrade::{Handed, Kind, Named, Part, Upgrades};
use crate::{Address, ConnectionInfo, Error};
use accepting::Accepting;
pub(crate) use config::{Config, INPUT_BYTES_MAX, PROTOCOL, STREAM_BYTES_MAX};

/// Time that clients have to take the news of the end of their connections.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// Time for which clients remember that there is HTTP/3: a day.
const ALTERNATIVE_SECONDS: u32 = 86_400;
/// Ports that are tried where the system chooses one.
const PORTS_TRIED: usize = 16;
/// The interval in which is looked whether connections are open, once the next version serves.
const LOOK: Duration = Duration::from_millis(20);
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
    sockets: Vec<UdpSocket>,
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
        let mut sockets = Vec::new();
        for address in addresses {
            sockets.push(socket(address, &mut upgrades)?);
        }
        Ok(Some(Self { sockets, config }))
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

/// Binds the listeners of an address. Where the system chooses the port, it is one that is free for
/// UDP, too, if HTTP/3 is served.
pub(crate) fn listen(
    address: &Address,
    loops: usize,
    settings: &Settings,
) -> Result<Vec<Listener>, Error> {
    let backlog = settings.limits.backlog;
    let mut bound = listen::bind(address, loops, backlog)?;
    for _ in 1..PORTS_TRIED {
        if !settings.http3 || is_usable(address, &bound) {
            break;
        }
        bound = listen::bind(address, loops, backlog)?;
    }
    Ok(bound)
}

fn is_usable(asked: &Address, bound: &[Listener]) -> bool {
    match (asked, bound.first().map(|listener| &listener.address)) {
        (Address::Tcp(asked), Some(Address::Tcp(address))) if asked.port() == 0 => {
            UdpSocket::bind(address).is_ok()
        }
        _ => true,
    }
}

/// Returns the socket of an address: that of the version before, or a new one. It goes over to the
/// next version.
fn socket(
    address: SocketAddr,
    upgrades: &mut Option<(&Upgrades, &mut Vec<Arc<Handed>>)>,
) -> Result<UdpSocket, Error> {
    let Some((upgrades, handed)) = upgrades else {
        return bind(address);
    };
    let named = Address::from(address);
    let socket = match upgrades.take_udp(&named) {
        Some(socket) => UdpSocket::from(socket),
        None => bind(address)?,
    };
    let over = upgrades.hand_over(Kind::Udp, Named::only(named.to_string()), &socket);
    handed.push(over.map_err(|source| Error::BindUdp {
        address: named,
        source,
    })?);
    Ok(socket)
}

fn bind(address: SocketAddr) -> Result<UdpSocket, Error> {
    let bound = UdpSocket::bind(address).and_then(|socket| {
        socket.set_nonblocking(true)?;
        Ok(socket)
    });
    bound.map_err(|source| Error::BindUdp {
        address: address.into(),
        source,
    })
}

/// The endpoints of a server, and what they need to know of its loops.
pub(crate) struct Endpoints {
    sockets: Vec<UdpSocket>,
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

    async fn serve(mut self, ending: oneshot::Receiver<()>) {
        let part = self.part.take();
        if let Some(part) = &part {
            // Until then the version before reads the datagrams, those of its connections.
            let mut told = self.told.clone();
            tokio::select! {
                () = part.released() => {}
                _ = told.wait_for(|phase| *phase != Phase::Serving) => {}
            }
        }
        let mut told = self.told.clone();
        let config = self.config.current();
        let opened = self.sockets.drain(..).map(|socket| {
            let server = Some((*config).clone());
            let runtime = Arc::new(TokioRuntime);
            Endpoint::new(EndpointConfig::default(), server, socket, runtime)
        });
        let opened: io::Result<Vec<_>> = opened.collect();
        let endpoints = match opened {
            Ok(endpoints) => endpoints,
            Err(error) => return tracing::error!(%error, "cannot serve HTTP/3"),
        };
        let accepting = Rc::new(Accepting::new(self));
        let mut serving = JoinSet::new();
        for endpoint in &endpoints {
            serving.spawn_local(Rc::clone(&accepting).serve(endpoint.clone()));
        }
        tokio::select! {
            // It is never sent, but dropped.
            _ = ending => {}
            () = handed_over(&mut told, &endpoints) => {}
        }
        let idle = async {
            for endpoint in &endpoints {
                endpoint.close(0_u32.into(), b"");
                endpoint.wait_idle().await;
            }
        };
        let _elapsed = timeout(CLOSE_TIMEOUT, idle).await;
        if let Some(part) = part {
            // No datagram is read here any more.
            serving.shutdown().await;
            drop(endpoints);
            part.release();
        }
    }
}

/// Completes when the next version serves and no connection is open here.
async fn handed_over(told: &mut watch::Receiver<Phase>, endpoints: &[Endpoint]) {
    let handing = told.wait_for(|phase| *phase == Phase::HandingOver).await;
    if handing.is_err() {
        return pending().await;
    }
    drop(handing);
    while endpoints.iter().any(|each| each.open_connections() > 0) {
        sleep(LOOK).await;
    }
}
