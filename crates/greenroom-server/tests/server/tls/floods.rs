use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use greenroom_server::Limits;
use rustls::client::UnbufferedClientConnection;
use rustls::pki_types::ServerName;
use rustls::unbuffered::ConnectionState;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use super::handshakes::{Telling, connect, start};
use crate::over::{NAME, client_config, tls};
use crate::rig::{Rig, within};

/// A client's first message.
fn hello() -> Vec<u8> {
    let name = ServerName::try_from(NAME).unwrap();
    let mut client = UnbufferedClientConnection::new(Arc::new(client_config()), name).unwrap();
    let status = client.process_tls_records(&mut []);
    let mut hello = vec![0; 8_192];
    let length = match status.state.unwrap() {
        ConnectionState::EncodeTlsData(mut data) => data.encode(&mut hello).unwrap(),
        state => panic!("{state:?}"),
    };
    hello.truncate(length);
    hello
}

#[tokio::test]
async fn a_request_waits_for_no_more_than_a_few_handshakes() {
    within(async {
        let server = start(tls().build().unwrap());
        let mut settled = connect(&server, &Arc::new(client_config())).await.unwrap();
        let hello = hello();
        let shaken = Rc::new(Cell::new(0));
        let mut flood = Vec::new();
        for _ in 0..200 {
            let mut client = UnixStream::connect(&server.path).await.unwrap();
            client.write_all(&hello).await.unwrap();
            let shaken = Rc::clone(&shaken);
            flood.push(tokio::task::spawn_local(async move {
                assert!(client.read(&mut [0; 64]).await.unwrap() > 0);
                shaken.set(shaken.get() + 1);
            }));
        }
        let request = b"GET / HTTP/1.1\r\nHost: test\r\n\r\n";
        settled.write_all(request).await.unwrap();
        let before = shaken.get();
        assert!(settled.read(&mut [0; 1_024]).await.unwrap() > 0);
        // One in each turn of the loop; some turns pass between the client and the server.
        let meanwhile = shaken.get() - before;
        assert!(
            meanwhile <= 20,
            "{meanwhile} handshakes before the response"
        );
        for client in flood {
            client.await.unwrap();
        }
        assert_eq!(shaken.get(), 200);
    })
    .await;
}

#[tokio::test]
async fn handshakes_beyond_the_limit_are_reset() {
    within(async {
        let limits = Limits {
            handshakes_max: 5,
            ..Limits::default()
        };
        let server = Rig::with(Telling, |builder| {
            builder.limits(limits).tls(tls().build().unwrap())
        });
        let hello = hello();
        let mut clients = Vec::new();
        for _ in 0..30 {
            let mut client = UnixStream::connect(&server.path).await.unwrap();
            client.write_all(&hello).await.unwrap();
            clients.push(client);
        }
        let mut served = 0;
        for mut client in clients {
            served += usize::from(client.read(&mut [0; 64]).await.is_ok_and(|read| read > 0));
        }
        assert!((5..30).contains(&served), "{served} of 30");
        assert!(connect(&server, &Arc::new(client_config())).await.is_ok());
    })
    .await;
}
