//! Clients of HTTP/3 at an upgrade: datagrams of a version that drains reach it by the next one.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use quinn::Endpoint;
use rustix::process::{Pid, Signal, kill_process};
use tokio::net::UdpSocket as Socket;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::client::{Client, Download, Fault, NAME, endpoint, trusting};
use super::versions::{Versions, lives, until};
use super::{Certified, quic_go};

/// So long that none is over before its client reads it.
const BYTES: usize = 20_000_000;

/// A program with HTTP/3 that is exchanged, and clients of it.
struct Rig {
    versions: Versions,
    certified: Certified,
    address: SocketAddr,
    endpoint: Endpoint,
}

impl Rig {
    fn serve() -> Self {
        let certified = Certified::for_name(NAME);
        let tls = certified.flags();
        // A machine that runs tests may be slow: nothing here is of time-outs, nor of overload.
        let flags = [
            "--http3",
            "--loops",
            "2",
            "--loop-lag-max",
            "1m",
            "--drain-deadline",
            "10m",
            "--handshake-timeout",
            "10m",
            "--write-timeout",
            "10m",
        ];
        let tls: Vec<&str> = tls.iter().map(String::as_str).collect();
        let versions = Versions::serve(&[&flags[..], &tls].concat());
        Self {
            address: versions.first.address.parse().unwrap(),
            versions,
            certified,
            endpoint: endpoint(),
        }
    }

    async fn try_connect(&self, address: SocketAddr) -> Result<Client, Fault> {
        let config = trusting(&self.certified.path("cert.pem"));
        Client::connect(&self.endpoint, config, address).await
    }

    async fn connect(&self) -> Client {
        self.try_connect(self.address).await.unwrap()
    }

    /// Begins a download, of which some has come.
    async fn download(&self) -> (Client, Download) {
        let mut client = self.connect().await;
        let mut download = client.begin(&format!("/bytes/{BYTES}")).await.unwrap();
        download.read_up_to(1_000).await.unwrap();
        (client, download)
    }

    /// Has a version without HTTP/3 take over. A client knows at once, and so comes by TCP.
    async fn upgrade_to_none(&mut self) {
        let program = env!("CARGO_BIN_EXE_greenroom");
        let flags = self.certified.flags().join(" ");
        self.versions.replace_by(&format!(
            "exec {program} serve --listen 127.0.0.1:0 {flags}"
        ));
        self.versions.upgrade();
        let refused = self.try_connect(self.address).await;
        let refused = refused.err().expect("nobody serves it").to_string();
        assert!(refused.contains("refused"), "{refused}");
    }

    /// Begins a handshake, to which the server has responded, and holds that up on its way.
    async fn held_handshake(&self) -> (Relay, JoinHandle<Result<Client, Fault>>) {
        let mut relay = Relay::to(self.address).await;
        let config = trusting(&self.certified.path("cert.pem"));
        let (endpoint, address) = (self.endpoint.clone(), relay.address);
        let connecting = async move { Client::connect(&endpoint, config, address).await };
        let connecting = tokio::spawn(connecting);
        relay.has_come.wait_for(|come| *come).await.unwrap();
        (relay, connecting)
    }

    async fn assert_served(&self) -> Client {
        let mut client = self.connect().await;
        assert_eq!(client.get("/hello").await.unwrap(), "Hello, world!\n");
        client
    }
}

fn kill(pid: u32) {
    let pid_of = Pid::from_raw(pid.cast_signed()).unwrap();
    kill_process(pid_of, Signal::KILL).unwrap();
    until("it does not die", || !lives(pid));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_download_goes_on_while_the_next_version_serves_new_clients() {
    let mut rig = Rig::serve();
    let before = rig.versions.pid;
    let (_client, download) = rig.download().await;
    rig.versions.upgrade();
    let mut next = rig.assert_served().await;
    let told = quic_go(&rig.certified, &rig.versions.first, &["/hello"]);
    assert_eq!(told, "Hello, world!\n");
    assert!(lives(before));
    assert_eq!(download.finish().await, BYTES);
    rig.versions.gone(before);
    assert_eq!(next.get("/hello").await.unwrap(), "Hello, world!\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn three_versions_serve_at_once_each_the_connections_that_began_there() {
    let mut rig = Rig::serve();
    let (first, (_one, first_download)) = (rig.versions.pid, rig.download().await);
    rig.versions.upgrade();
    let (second, (_two, second_download)) = (rig.versions.pid, rig.download().await);
    rig.versions.upgrade();
    let (_three, third_download) = rig.download().await;
    assert!(lives(first) && lives(second));
    assert_eq!(second_download.finish().await, BYTES);
    rig.versions.gone(second);
    // The version between them is no part of the way.
    assert_eq!(first_download.finish().await, BYTES);
    rig.versions.gone(first);
    rig.versions.upgrade();
    rig.assert_served().await;
    assert_eq!(third_download.finish().await, BYTES);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_is_killed_while_it_drains_holds_up_nobody() {
    let mut rig = Rig::serve();
    let before = rig.versions.pid;
    let (_lost, _download) = rig.download().await;
    rig.versions.upgrade();
    let (_client, download) = rig.download().await;
    kill(before);
    // What the lost client sends now has nowhere to go.
    rig.endpoint
        .rebind(UdpSocket::bind("127.0.0.1:0").unwrap())
        .unwrap();
    rig.assert_served().await;
    assert_eq!(download.finish().await, BYTES);
    let second = rig.versions.pid;
    rig.versions.upgrade();
    rig.assert_served().await;
    rig.versions.gone(second);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_drains_reads_again_when_the_next_one_is_killed() {
    let mut rig = Rig::serve();
    let before = rig.versions.pid;
    let (_client, download) = rig.download().await;
    rig.versions.upgrade();
    rig.assert_served().await;
    kill(rig.versions.pid);
    assert_eq!(download.finish().await, BYTES);
    rig.versions.gone(before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_next_version_that_fails_leaves_the_datagrams_where_they_were() {
    let mut rig = Rig::serve();
    let before = rig.versions.pid;
    let (_client, download) = rig.download().await;
    let mut kept = rig.assert_served().await;
    rig.versions.replace_by("exit 1");
    rig.versions.fails();
    // It has the sockets, and ends without a word.
    rig.versions.replace_by("cat <&0 >/dev/null & kill -9 $$");
    rig.versions.fails();
    rig.assert_served().await;
    assert_eq!(kept.get("/hello").await.unwrap(), "Hello, world!\n");
    rig.versions.restore();
    rig.versions.upgrade();
    rig.assert_served().await;
    assert_eq!(download.finish().await, BYTES);
    rig.versions.gone(before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_next_version_without_http_3_leaves_it_to_the_one_before_to_end_it() {
    let mut rig = Rig::serve();
    let before = rig.versions.pid;
    let (_client, download) = rig.download().await;
    rig.upgrade_to_none().await;
    assert_eq!(download.finish().await, BYTES);
    rig.versions.gone(before);
}

#[tokio::test(flavor = "multi_thread")]
async fn rfc9000_9_a_client_of_a_version_that_drains_may_change_its_address() {
    let mut rig = Rig::serve();
    let before = rig.versions.pid;
    let (_client, mut download) = rig.download().await;
    rig.versions.upgrade();
    download.read_up_to(BYTES / 2).await.unwrap();
    rig.endpoint
        .rebind(UdpSocket::bind("127.0.0.1:0").unwrap())
        .unwrap();
    assert_eq!(download.finish().await, BYTES);
    rig.versions.gone(before);
}

/// A way to a server for one client, on which what the server sends waits until it is let go.
struct Relay {
    address: SocketAddr,
    has_come: watch::Receiver<bool>,
    open: watch::Sender<bool>,
}

impl Relay {
    async fn to(server: SocketAddr) -> Self {
        let (front, back) = (socket().await, socket().await);
        back.connect(server).await.unwrap();
        let address = front.local_addr().unwrap();
        let (client, client_seen) = watch::channel(None);
        let (come, has_come) = watch::channel(false);
        let (open, opened) = watch::channel(false);
        let sockets = (Arc::clone(&front), Arc::clone(&back));
        tokio::spawn(async move {
            let mut datagram = [0; 2_000];
            while let Ok((length, from)) = sockets.0.recv_from(&mut datagram).await {
                client.send_replace(Some(from));
                // A server that has ended is none of its business.
                let _sent = sockets.1.send(&datagram[..length]).await;
            }
        });
        tokio::spawn(async move {
            let mut datagram = [0; 2_000];
            let mut opened = opened;
            while let Ok(length) = back.recv(&mut datagram).await {
                come.send_replace(true);
                if opened.wait_for(|open| *open).await.is_err() {
                    return;
                }
                let client: Option<SocketAddr> = *client_seen.borrow();
                let to = client.expect("the server responds to somebody");
                front.send_to(&datagram[..length], to).await.unwrap();
            }
        });
        Self {
            address,
            has_come,
            open,
        }
    }
}

async fn socket() -> Arc<Socket> {
    Arc::new(Socket::bind("127.0.0.1:0").await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handshake_that_is_under_way_is_finished_by_the_version_that_began_it() {
    let mut rig = Rig::serve();
    let before = rig.versions.pid;
    let (relay, connecting) = rig.held_handshake().await;
    rig.versions.upgrade();
    relay.open.send_replace(true);
    let mut client = connecting.await.unwrap().unwrap();
    assert_eq!(client.get("/hello").await.unwrap(), "Hello, world!\n");
    drop(client);
    // Its handshake is over, or this version would wait ten minutes for it.
    rig.versions.gone(before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handshake_that_is_under_way_brings_in_no_others_when_the_next_version_has_no_http_3() {
    let mut rig = Rig::serve();
    let before = rig.versions.pid;
    let (relay, connecting) = rig.held_handshake().await;
    rig.upgrade_to_none().await;
    relay.open.send_replace(true);
    let mut client = connecting.await.unwrap().unwrap();
    assert_eq!(client.get("/hello").await.unwrap(), "Hello, world!\n");
    drop(client);
    rig.versions.gone(before);
}

/// Sends requests until `done`, each on a connection of its own, and returns their number.
async fn ask(config: quinn::ClientConfig, address: SocketAddr, done: Arc<AtomicBool>) -> usize {
    let endpoint = endpoint();
    let mut responses = 0;
    while !done.load(Ordering::Relaxed) {
        let mut client = Client::connect(&endpoint, config.clone(), address)
            .await
            .unwrap();
        assert_eq!(client.get("/hello").await.unwrap(), "Hello, world!\n");
        client.connection.close(0x100_u32.into(), b"");
        responses += 1;
    }
    responses
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_client_is_refused_in_ten_upgrades_in_a_row() {
    let mut rig = Rig::serve();
    let config = trusting(&rig.certified.path("cert.pem"));
    let done = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..3)
        .map(|_| tokio::spawn(ask(config.clone(), rig.address, Arc::clone(&done))))
        .collect();
    let (first, (_client, download)) = (rig.versions.pid, rig.download().await);
    for _ in 0..10 {
        rig.versions.upgrade();
    }
    done.store(true, Ordering::Relaxed);
    for client in clients {
        assert!(client.await.unwrap() > 0);
    }
    assert!(lives(first));
    assert_eq!(download.finish().await, BYTES);
    rig.versions.gone(first);
}
