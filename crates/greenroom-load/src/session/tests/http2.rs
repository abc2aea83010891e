//! HTTP/2 that succeeds.

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::TlsAcceptor;

use super::http2_server::{Http2, Manner};
use super::server::{Server, on_this_thread};
use super::*;
use crate::plan::TlsOptions;
use crate::tls;

fn http2() -> StreamPlan {
    plan(Protocol::Http2)
}

#[test]
fn a_connection_is_kept_for_all_requests() {
    let server = Http2::new(Manner::Bytes).start();
    let outcome = run(&with_requests(http2(), 20), server.address);
    assert_eq!((outcome.responses(), outcome.failures()), (20, vec![]));
    let counts = outcome.tally.counts;
    assert_eq!(
        (counts.sent, counts.connections, counts.reused),
        (20, 1, 19)
    );
    assert_eq!(outcome.tally.connect.count(), 1);
    assert_eq!(
        (outcome.ending.unfinished, outcome.ending.gave_up),
        (0, false)
    );
    assert!(outcome.ending.last_ns > 0);
}

#[test]
fn each_request_has_its_connection_without_keep_alive() {
    let server = Http2::new(Manner::Bytes).start();
    let plan = StreamPlan {
        keep_alive: false,
        connections: 3,
        in_flight_max: 10,
        ..with_requests(http2(), 8)
    };
    let counts = run(&plan, server.address).tally.counts;
    assert_eq!((counts.sent, counts.connections, counts.reused), (8, 8, 0));
}

#[test]
fn streams_are_under_way_together_up_to_the_servers_limit() {
    let server = Http2 {
        streams_max: 3,
        ..Http2::new(Manner::Groups(3))
    };
    let server = server.start();
    let plan = StreamPlan {
        in_flight_max: 10,
        ..with_requests(http2(), 9)
    };
    let outcome = run(&plan, server.address);
    assert_eq!((outcome.responses(), outcome.failures()), (9, vec![]));
}

#[test]
fn no_more_streams_are_under_way_than_the_plan_allows() {
    let server = Http2::new(Manner::Groups(4)).start();
    let plan = StreamPlan {
        in_flight_max: 4,
        ..with_requests(http2(), 8)
    };
    assert_eq!(run(&plan, server.address).responses(), 8);
    let plan = StreamPlan {
        in_flight_max: 3,
        timeout: Duration::from_millis(200),
        ..with_requests(http2(), 3)
    };
    let failures = run(&plan, server.address).failures();
    assert_eq!(failures, [(FailureKind::Timeout, 3)]);
}

#[test]
fn big_bodies_flow_both_ways() {
    let server = Http2::new(Manner::Bytes).start();
    let mut plan = with_requests(http2(), 3);
    plan.request.method = "POST".to_owned();
    plan.request.body = vec![b'b'; 3_000_000];
    let endpoints = vec![
        endpoint("http://localhost/echo", server.address),
        endpoint("http://localhost/5000000", server.address),
    ];
    let outcome = run_to(&plan, endpoints);
    assert_eq!(outcome.failures(), []);
    let counts = outcome.tally.counts;
    assert_eq!(counts.body_bytes, 3_000_000 + 5_000_000 + 3_000_000);
    assert_eq!(counts.received_bytes, counts.body_bytes);
    assert_eq!(counts.sent_bytes, 9_000_000);
    assert_eq!((counts.connections, counts.other_length), (1, 1));
}

#[test]
fn the_first_response_is_shown() {
    let server = Http2::new(Manner::Bytes).start();
    let endpoints = vec![endpoint("http://localhost/2000000", server.address)];
    let outcome = run_to(&with_requests(http2(), 2), endpoints);
    let first = outcome.first.expect("there was one");
    assert!(first.head.starts_with(b"HTTP/2 200\n"));
    assert_eq!(first.field("server").as_deref(), Some("test"));
    assert_eq!(first.body.len(), FirstResponse::BODY_BYTES_MAX);
    assert_eq!(first.body_bytes, 2_000_000);
    assert_eq!(first.tls, None);
}

#[test]
fn a_server_that_goes_away_is_connected_to_again() {
    let server = Http2::new(Manner::GoAway).start();
    let outcome = run(&with_requests(http2(), 5), server.address);
    assert_eq!((outcome.responses(), outcome.failures()), (5, vec![]));
    assert_eq!(outcome.tally.counts.connections, 5);
}

#[test]
fn connections_come_from_the_sources_in_turn() {
    let (seen, sources) = std::sync::mpsc::channel();
    let http2_server = Http2::new(Manner::Bytes);
    let server = Server::start(move |stream| {
        let peer = stream.peer_addr().expect("it is connected");
        seen.send(peer.ip().to_string()).expect("the test listens");
        http2_server.clone().serve(stream)
    });
    let plan = StreamPlan {
        keep_alive: false,
        sources: ["127.0.0.2", "127.0.0.3"]
            .map(|source| source.parse().expect("an address"))
            .to_vec(),
        window_bytes: Some(65_536),
        ..with_requests(http2(), 3)
    };
    assert_eq!(run(&plan, server.address).responses(), 3);
    let seen: Vec<_> = sources.try_iter().collect();
    assert_eq!(seen, ["127.0.0.2", "127.0.0.3", "127.0.0.2"]);
}

#[test]
fn unix_sockets_serve_as_well() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("socket");
    let listener = std::os::unix::net::UnixListener::bind(&path).expect("a socket");
    listener.set_nonblocking(true).expect("a socket");
    let thread = std::thread::spawn(move || {
        on_this_thread(async move {
            let listener = tokio::net::UnixListener::from_std(listener).expect("a listener");
            let (stream, _) = listener.accept().await.expect("a connection");
            Http2::new(Manner::Bytes).serve(stream).await;
        });
    });
    let endpoint = Endpoint {
        target: "http://localhost/7".parse().expect("a URL"),
        address: Address::Unix(path),
        tls: None,
    };
    let outcome = run_to(&with_requests(http2(), 4), vec![endpoint]);
    assert_eq!(outcome.tally.counts.body_bytes, 28);
    thread.join().expect("the server saw the connection's end");
}

/// Starts a server with a self-signed certificate.
fn tls_server(protocols: &[&[u8]]) -> Server {
    let pair = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let key = PrivatePkcs8KeyDer::from(pair.signing_key.serialize_der());
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![pair.cert.der().clone()], PrivateKeyDer::Pkcs8(key))
        .expect("a certificate");
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    Server::start(move |stream| {
        let acceptor = acceptor.clone();
        async move {
            if let Ok(stream) = acceptor.accept(stream).await {
                Http2::new(Manner::Bytes).serve(stream).await;
            }
        }
    })
}

fn run_over_tls(server: &Server, insecure: bool) -> Outcome {
    let options = TlsOptions {
        insecure,
        ..TlsOptions::default()
    };
    let config = tls::client_config(&options, &[b"h2"]).expect("trusted certificates");
    let mut endpoint = endpoint("https://localhost/", server.address);
    let name = tls::server_name(&endpoint.target).expect("a name");
    endpoint.tls = Some((config, name));
    run_to(&with_requests(http2(), 20), vec![endpoint])
}

#[test]
fn a_certificate_of_nobody_is_refused_unless_any_is_accepted() {
    let server = tls_server(&[b"h2"]);
    let refused = run_over_tls(&server, false);
    assert_eq!(refused.failures(), [(FailureKind::Tls, 10)]);
    assert!(refused.ending.gave_up);
    let detail = refused.tally.failures.detail(FailureKind::Tls);
    assert!(detail.is_some_and(|text| text.contains("certificate")));
    let accepted = run_over_tls(&server, true);
    assert_eq!((accepted.responses(), accepted.failures()), (20, vec![]));
    let tls = accepted.first.and_then(|first| first.tls);
    let tls = tls.expect("it is told what was agreed on");
    assert!(tls.starts_with("TLSv1.3,TLS_"), "{tls}");
}

#[test]
fn a_server_that_does_not_choose_http2_is_reported() {
    let outcome = run_over_tls(&tls_server(&[]), true);
    assert_eq!(outcome.failures(), [(FailureKind::Handshake, 10)]);
    assert!(outcome.ending.gave_up);
}
