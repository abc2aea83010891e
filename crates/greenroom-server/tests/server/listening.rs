//! Addresses: bound or refused, and given back.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use greenroom_server::{Address, Error, Server};
use socket2::{Domain, SockAddr, Socket, Type};
use tempfile::tempdir;

use crate::client::Client;
use crate::rig::{HUNG_FOR_REAL, Rig, app, text, within};

pub(crate) const ANY_PORT: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

pub(crate) fn tcp_address(server: &Server) -> SocketAddr {
    let mut addresses = server.local_addresses().iter();
    let found = addresses.find_map(|address| match address {
        Address::Tcp(address) => Some(*address),
        Address::Unix(_) => None,
    });
    found.expect("the server listens on TCP")
}

fn unix(path: &Path) -> Address {
    Address::Unix(path.to_owned())
}

fn bind_error(address: impl Into<Address>) -> String {
    let error = Server::builder().listen(address).bind().unwrap_err();
    assert!(matches!(error, Error::Bind { .. }), "{error:?}");
    error.to_string()
}

#[test]
fn a_server_needs_an_address() {
    let error = Server::builder().bind().unwrap_err();
    assert!(matches!(error, Error::NoAddress), "{error:?}");
}

#[tokio::test]
async fn a_server_that_may_be_without_one_lasts_until_its_handle_ends_it() {
    let server = Server::builder().without_address().bind().unwrap();
    assert!(server.local_addresses().is_empty());
    let handle = server.handle();
    let mut serving = tokio::spawn(server.serve(app(|_| async { Ok(text("ok")) })));
    let a_while = Duration::from_millis(50);
    let ended = tokio::time::timeout(a_while, &mut serving).await;
    assert!(ended.is_err(), "{ended:?}");
    handle.drain();
    let report = serving.await.unwrap().unwrap();
    assert!(report.aborted.is_empty());
}

#[test]
fn a_port_in_use_is_refused_by_name() {
    let taken = TcpListener::bind(ANY_PORT).unwrap();
    let address = taken.local_addr().unwrap();
    let said = bind_error(address);
    assert!(said.contains(&address.to_string()), "{said}");
    assert!(said.contains("in use"), "{said}");
}

#[test]
fn two_servers_do_not_share_a_port_by_accident() {
    for loops in [1, 2, 4] {
        let builder = Server::builder().loops(loops.try_into().unwrap());
        let first = builder.listen(ANY_PORT).bind().unwrap();
        let address = tcp_address(&first);
        let second = Server::builder().loops(2.try_into().unwrap());
        let error = second.listen(address).bind().unwrap_err();
        assert!(error.to_string().contains(&address.to_string()));
    }
}

#[test]
fn a_port_is_free_again_when_its_server_is_gone() {
    let first = Server::builder().listen(ANY_PORT).bind().unwrap();
    let address = tcp_address(&first);
    drop(first);
    Server::builder().listen(address).bind().unwrap();
}

#[test]
fn an_address_of_another_machine_is_refused() {
    let said = bind_error(SocketAddr::from(([192, 0, 2, 1], 5_000)));
    assert!(said.contains("192.0.2.1:5000"), "{said}");
}

#[test]
fn a_socket_file_is_removed_with_its_server() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("server.sock");
    let server = Server::builder().listen(unix(&path)).bind().unwrap();
    assert!(path.exists());
    drop(server);
    assert!(!path.exists());
}

#[test]
fn a_socket_file_that_nobody_listens_on_is_replaced() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("server.sock");
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    Server::builder().listen(unix(&path)).bind().unwrap();
}

#[test]
fn a_socket_file_that_somebody_listens_on_is_refused_and_kept() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("server.sock");
    let first = Server::builder().listen(unix(&path)).bind().unwrap();
    let said = bind_error(unix(&path));
    assert!(
        said.contains("in use") && said.contains("server.sock"),
        "{said}"
    );
    assert!(path.exists());
    drop(first);
}

#[test]
fn a_socket_file_whose_listener_has_a_full_queue_is_refused_and_kept() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("server.sock");
    let address = SockAddr::unix(&path).unwrap();
    let socket = || Socket::new(Domain::UNIX, Type::STREAM.nonblocking(), None).unwrap();
    let listener = socket();
    listener.bind(&address).unwrap();
    listener.listen(0).unwrap();
    let clients = std::iter::repeat_with(socket);
    // Until the system says that there is no room for one more.
    let waiting: Vec<_> = clients
        .take_while(|client| client.connect(&address).is_ok())
        .collect();
    assert!(!waiting.is_empty());
    let (tell, told) = mpsc::channel();
    let refused = unix(&path);
    // A thread of its own, which could wait without end.
    thread::spawn(move || tell.send(bind_error(refused)));
    let said = told.recv_timeout(HUNG_FOR_REAL).unwrap();
    assert!(
        said.contains("in use") && said.contains("server.sock"),
        "{said}"
    );
    assert!(path.exists());
}

#[test]
fn a_file_that_is_no_socket_is_refused_and_kept() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("precious.txt");
    std::fs::write(&path, "text").unwrap();
    let said = bind_error(unix(&path));
    assert!(said.contains("precious.txt"), "{said}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "text");
}

#[tokio::test]
async fn a_socket_file_is_removed_when_its_server_has_drained() {
    within(async {
        let server = Rig::start(app(|_| async { Ok(text("ok")) }));
        let path = server.path.clone();
        assert_eq!(server.connect().await.get("/").await.text(), "ok");
        server.handle.drain();
        server.ended().await;
        assert!(!path.exists());
    })
    .await;
}

#[tokio::test]
async fn several_addresses_are_served_by_one_server() {
    within(async {
        let directory = tempdir().unwrap();
        let path = directory.path().join("server.sock");
        let adopted = TcpListener::bind(ANY_PORT).unwrap();
        let server = Server::builder()
            .loops(2.try_into().unwrap())
            .listen(SocketAddr::from((std::net::Ipv6Addr::LOCALHOST, 0)))
            .listen(ANY_PORT)
            .listen(unix(&path))
            .listener(adopted)
            .bind()
            .unwrap();
        let addresses = server.local_addresses().to_vec();
        let handle = server.handle();
        let serving = tokio::spawn(server.serve(app(|_| async { Ok(text("ok")) })));
        assert_eq!(addresses.len(), 4);
        for address in &addresses {
            let mut client = match address {
                Address::Tcp(address) => Client::tcp(*address).await,
                Address::Unix(path) => Client::unix(path).await,
            };
            assert_eq!(client.get("/").await.text(), "ok", "{address}");
        }
        handle.drain();
        assert_eq!(serving.await.unwrap().unwrap().aborted, []);
    })
    .await;
}
