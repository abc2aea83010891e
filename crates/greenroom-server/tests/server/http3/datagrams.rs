//! Datagrams of strangers.

use std::net::SocketAddr;

use greenroom_server::Limits;
use metrics::set_default_local_recorder;
use tokio::net::UdpSocket;

use super::counting::{Counts, assert_counted};
use super::handler;
use super::rig::{Rig, client, endpoint};
use crate::over::NAME;
use crate::rig::{app, within};

/// The type of a packet with a long header (RFC 9000, 17.2): 0 is Initial, 3 is Retry.
fn packet_type(datagram: &[u8]) -> u8 {
    datagram[0] >> 4 & 3
}

const RETRY: u8 = 3;

/// The first datagram of a client that connects to nobody.
async fn initial() -> Vec<u8> {
    let nobody = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let endpoint = endpoint();
    let address = nobody.local_addr().unwrap();
    let _connecting = endpoint.connect_with(client(), address, NAME).unwrap();
    let mut datagram = vec![0; 2_000];
    let (length, _) = nobody.recv_from(&mut datagram).await.unwrap();
    datagram.truncate(length);
    datagram
}

async fn send(datagram: &[u8], server: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.send_to(datagram, server).await.unwrap();
    socket
}

#[tokio::test]
async fn garbage_harms_nobody() {
    within(async {
        let server = Rig::start(app(handler));
        let client = server.connect().await;
        let first = initial().await;
        let mut broken = first.clone();
        let middle = broken.len() / 2;
        broken[middle] ^= 0xff;
        let mut other_version = first.clone();
        other_version[1..5].copy_from_slice(&0x1a2a_3a4a_u32.to_be_bytes());
        for length in [0, 1, 5, 20, 100, 1_199] {
            send(&first[..length], server.address).await;
        }
        for datagram in [&broken[..], &other_version, &[0; 1_200], &[0xff; 1_472]] {
            send(datagram, server.address).await;
        }
        for seed in 0..200_u8 {
            let garbage: Vec<u8> = (0..=255_u8)
                .map(|byte| byte.wrapping_mul(seed) ^ seed)
                .collect();
            send(&garbage, server.address).await;
        }
        assert_eq!(client.get("/still").await.1, "/still");
        assert_eq!(server.connect().await.get("/new").await.1, "/new");
    })
    .await;
}

#[tokio::test]
async fn rfc9000_8_1_2_who_comes_when_many_handshakes_are_open_has_to_show_its_address() {
    within(async {
        let server = Rig::start(app(handler));
        let mut strangers = Vec::new();
        for number in 0..70 {
            let socket = send(&initial().await, server.address).await;
            let mut response = vec![0; 2_000];
            let (length, _) = socket.recv_from(&mut response).await.unwrap();
            let is_retry = packet_type(&response[..length]) == RETRY;
            assert_eq!(is_retry, number >= 64, "{number}");
            strangers.push(socket);
        }
        // Whoever is where it says is served.
        assert_eq!(server.connect().await.get("/new").await.1, "/new");
    })
    .await;
}

#[tokio::test]
async fn an_address_has_no_more_than_an_eighth_of_the_handshakes() {
    let counts = Counts::default();
    // All of the server is on this thread.
    let _recording = set_default_local_recorder(&counts);
    within(async {
        let limits = Limits {
            handshakes_max: 16,
            ..Limits::default()
        };
        let server = Rig::limited(app(handler), limits);
        let mut strangers = Vec::new();
        for _ in 0..2 {
            let socket = send(&initial().await, server.address).await;
            socket.recv_from(&mut [0; 2_000]).await.unwrap();
            strangers.push(socket);
        }
        let endpoint = endpoint();
        let connecting = endpoint.connect_with(client(), server.address, NAME);
        let refused = connecting.unwrap().await.unwrap_err().to_string();
        assert!(refused.contains("refused"), "{refused}");
        assert_counted(&counts.declined(), " quic handshakes");
    })
    .await;
}
