//! Connections of quinn's, with h3 on the server's side.
#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::future::poll_fn;
use std::net::UdpSocket;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use h3::quic::{Connection as _, RecvStream as _};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, Connection, Endpoint, EndpointConfig, ServerConfig, TokioRuntime};
use rustls::RootCertStore;
use rustls::pki_types::PrivateKeyDer;

use super::Part;
use super::streams::Streams;
use super::transport;
use crate::Limits;
use crate::event_loop::Clock;
use crate::memory::Memory;

const NAME: &str = "server.test";

type Server = h3::server::Connection<transport::Connection, Part>;

/// The two ends of a connection.
struct Pair {
    client: Connection,
    server: Connection,
    _endpoints: [Endpoint; 2],
}

fn configs() -> (ClientConfig, ServerConfig) {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(vec![NAME.to_owned()]).unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(certificate.der().clone()).unwrap();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let server = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider));
    let server = server.with_safe_default_protocol_versions().unwrap();
    let server = server.with_no_client_auth();
    let server = server.with_single_cert(vec![certificate.der().clone()], key);
    let client = rustls::ClientConfig::builder_with_provider(provider);
    let client = client.with_safe_default_protocol_versions().unwrap();
    let client = client.with_root_certificates(roots).with_no_client_auth();
    let client = QuicClientConfig::try_from(client).unwrap();
    let server = QuicServerConfig::try_from(server.unwrap()).unwrap();
    let server = ServerConfig::with_crypto(Arc::new(server));
    (ClientConfig::new(Arc::new(client)), server)
}

fn endpoint(server: Option<ServerConfig>) -> Endpoint {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let runtime = Arc::new(TokioRuntime);
    Endpoint::new(EndpointConfig::default(), server, socket, runtime).unwrap()
}

impl Pair {
    async fn new() -> Self {
        let (client, server) = configs();
        let (ours, theirs) = (endpoint(Some(server)), endpoint(None));
        let address = ours.local_addr().unwrap();
        let connecting = theirs.connect_with(client, address, NAME).unwrap();
        let (client, server) = tokio::join!(connecting, async {
            ours.accept().await.unwrap().await.unwrap()
        });
        Self {
            client: client.unwrap(),
            server,
            _endpoints: [ours, theirs],
        }
    }

    /// Brings h3 the server's end.
    fn transport(&self) -> (transport::Connection, Rc<Streams>) {
        let memory = Arc::new(Memory::new(usize::MAX));
        let quic = self.server.clone();
        let streams = Streams::new(&Limits::default(), Clock::default(), memory, quic);
        let quic = self.server.clone();
        let transport = transport::Connection::new(quic, Rc::clone(&streams), 1_000);
        (transport, streams)
    }

    /// Has h3 serve it.
    async fn serve(&self) -> (Server, Rc<Streams>) {
        let (transport, streams) = self.transport();
        let mut builder = h3::server::builder();
        let built = builder.send_grease(false).build(transport).await;
        (built.unwrap(), streams)
    }
}

#[tokio::test]
async fn streams_that_come_behind_a_goaway_leave_nothing() {
    let pair = Pair::new().await;
    let (mut serving, streams) = pair.serve().await;
    let streams = {
        let kept = Rc::downgrade(&streams);
        drop(streams);
        kept
    };
    serving.shutdown(1).await.unwrap();
    // h3 brings the first of them, which the GOAWAY names, and resets the others by itself.
    for _ in 0..3 {
        let (mut send, _) = pair.client.open_bi().await.unwrap();
        send.write_all(&[1]).await.unwrap();
    }
    drop(serving.accept().await.unwrap());
    let waiting = async {
        let accepted = serving.accept().await;
        assert!(accepted.is_err(), "it brings no other");
    };
    let leaving = async {
        // The server's credit for more streams shows that these have ended there.
        for _ in 0..200 {
            let (mut send, _) = pair.client.open_bi().await.unwrap();
            send.write_all(&[1]).await.unwrap();
        }
        assert!(streams.upgrade().unwrap().idle_since().is_some());
        pair.client.close(0_u32.into(), b"");
    };
    tokio::join!(waiting, leaving);
    drop(serving);
    assert!(streams.upgrade().is_none());
}

#[tokio::test]
async fn a_stream_of_many_frames_takes_turns() {
    let pair = Pair::new().await;
    let (mut transport, _streams) = pair.transport();
    let (mut send, _receive) = pair.client.open_bi().await.unwrap();
    let unknown = [0x21, 0];
    send.write_all(&unknown.repeat(500)).await.unwrap();
    let mut stream = poll_fn(|cx| transport.poll_accept_bidi(cx)).await.unwrap();
    let mut count = 0;
    while count < 500 {
        let at_once = poll_fn(|cx| {
            let mut at_once = 0;
            while let Poll::Ready(piece) = stream.poll_data(cx) {
                assert_eq!(piece.unwrap().unwrap(), unknown[..]);
                at_once += 1;
            }
            Poll::Ready(at_once)
        });
        let at_once = at_once.await;
        assert!(at_once <= 128, "{at_once}");
        count += at_once;
        tokio::task::yield_now().await;
    }
    assert_eq!(count, 500);
}
