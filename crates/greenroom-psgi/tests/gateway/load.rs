//! Clients in a closed loop, with an account of every response.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use greenroom_psgi::{Gateway, GatewayStatus, WorkerState};
use http::header::HOST;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustix::process::{Pid, Signal, kill_process};
use tokio::net::TcpSocket;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::rig::{Response, Rig, text};

/// The interval between two looks at a condition.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// A client with a connection of its own, which it keeps.
pub(crate) struct Client {
    address: SocketAddr,
    from: IpAddr,
    sender: Option<SendRequest<Full<Bytes>>>,
}

impl Client {
    pub(crate) fn new(rig: &Rig) -> Self {
        Self::at(rig.address.ip(), rig)
    }

    /// Returns a client with this address of its own.
    pub(crate) fn at(from: IpAddr, rig: &Rig) -> Self {
        Self {
            address: rig.address,
            from,
            sender: None,
        }
    }

    /// Connects, so that the next request is sent at once.
    pub(crate) async fn connected(rig: &Rig) -> Self {
        let mut client = Self::new(rig);
        client.sender = Some(client.open().await);
        client
    }

    pub(crate) async fn ask(&mut self, method: Method, path: &str) -> Response {
        let mut sender = match self.sender.take() {
            Some(sender) if !sender.is_closed() => sender,
            _ => self.open().await,
        };
        let request = Request::builder().method(method).uri(path);
        let request = request.header(HOST, "a").body(Full::default()).unwrap();
        sender.ready().await.expect("the server keeps connections");
        let response = sender.send_request(request).await;
        let (head, body) = response.expect("there is a response").into_parts();
        let body = body.collect().await.expect("the response is whole");
        self.sender = Some(sender);
        Response::from_parts(head, body.to_bytes())
    }

    async fn open(&self) -> SendRequest<Full<Bytes>> {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((self.from, 0).into()).expect("it is loopback");
        let stream = socket.connect(self.address).await;
        let stream = TokioIo::new(stream.expect("the server accepts"));
        let (sender, connection) = http1::handshake(stream).await.expect("it can be used");
        tokio::spawn(connection);
        sender
    }
}

/// The number of responses, by status.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    sent: usize,
    statuses: BTreeMap<u16, usize>,
    /// The texts of the responses with 200, behind the request's name, with their number.
    pub(crate) said: BTreeMap<String, usize>,
}

impl Tally {
    pub(crate) fn count(&self, status: StatusCode) -> usize {
        self.statuses.get(&status.as_u16()).copied().unwrap_or(0)
    }

    /// Asserts that every request got a response, with one of these statuses.
    pub(crate) fn assert_only(&self, allowed: &[StatusCode]) {
        let counted: usize = allowed.iter().map(|status| self.count(*status)).sum();
        assert!(
            self.sent > 0 && counted == self.sent,
            "other than {allowed:?}: {self:?}"
        );
    }

    fn add(&mut self, other: Self) {
        self.sent += other.sent;
        for (status, count) in other.statuses {
            *self.statuses.entry(status).or_default() += count;
        }
        for (said, count) in other.said {
            *self.said.entry(said).or_default() += count;
        }
    }

    fn note(&mut self, name: &str, response: &Response) {
        *self.statuses.entry(response.status().as_u16()).or_default() += 1;
        match response.status() {
            StatusCode::OK => {
                let text = text(response);
                let (of, said) = text.split_once(' ').expect("it says what of");
                assert_eq!(of, name, "the response is another's");
                *self.said.entry(said.to_owned()).or_default() += 1;
            }
            StatusCode::SERVICE_UNAVAILABLE => {
                assert!(response.headers().contains_key("retry-after"));
            }
            _ => {}
        }
    }
}

/// Clients that send requests again and again. The application responds with the query, a blank and
/// any text.
pub(crate) struct Load {
    clients: JoinSet<Tally>,
    served: watch::Sender<usize>,
    is_over: Arc<AtomicBool>,
}

impl Load {
    pub(crate) fn start(rig: &Rig, clients: usize, path: &'static str) -> Self {
        let mut load = Self {
            clients: JoinSet::new(),
            served: watch::Sender::new(0),
            is_over: Arc::default(),
        };
        for number in 0..clients {
            let (served, is_over) = (load.served.clone(), Arc::clone(&load.is_over));
            let mut client = Client::new(rig);
            load.clients.spawn(async move {
                let mut tally = Tally::default();
                while !is_over.load(Ordering::Relaxed) {
                    let name = format!("{number}-{}", tally.sent);
                    tally.sent += 1;
                    let response = client.ask(Method::GET, &format!("{path}?{name}")).await;
                    tally.note(&name, &response);
                    served.send_modify(|served| *served += 1);
                }
                tally
            });
        }
        load
    }

    /// Waits for this many responses.
    pub(crate) async fn responses(&self, count: usize) {
        let mut served = self.served.subscribe();
        let enough = *served.borrow() + count;
        served.wait_for(|now| *now >= enough).await.unwrap();
    }

    pub(crate) async fn end(mut self) -> Tally {
        self.is_over.store(true, Ordering::Relaxed);
        let mut all = Tally::default();
        while let Some(tally) = self.clients.join_next().await {
            all.add(tally.expect("every response is right"));
        }
        all
    }
}

/// Waits until the condition holds.
pub(crate) async fn until(mut is_so: impl FnMut() -> bool) {
    while !is_so() {
        sleep(LOOK_INTERVAL).await;
    }
}

/// Returns the processes of the workers that are ready.
pub(crate) fn ready(status: &GatewayStatus) -> Vec<i32> {
    let workers = status.workers.iter();
    let ready = workers.filter(|worker| worker.state == WorkerState::Ready);
    ready.map(|worker| worker.pid).collect()
}

pub(crate) fn kill(pid: i32) {
    let pid = Pid::from_raw(pid).expect("it is a process' number");
    kill_process(pid, Signal::KILL).expect("the process exists");
}

/// Sends these requests until their routes are known as short.
pub(crate) async fn prove_short(rig: &Rig, gateway: &Gateway, requests: &[(Method, &str)]) {
    let mut client = Client::new(rig);
    while gateway.status().queue.short_routes < requests.len() {
        for (method, path) in requests {
            let response = client.ask(method.clone(), path).await;
            assert_eq!(response.status(), StatusCode::OK);
        }
    }
}
