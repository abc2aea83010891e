use std::cell::Cell;
use std::io::Write;
use std::rc::Rc;
use std::sync::Arc;

use greenroom_server::Limits;
use rustls::client::UnbufferedClientConnection;
use rustls::crypto::cipher::{MessageEncrypter, OutboundChunks, OutboundPlainMessage};
use rustls::pki_types::ServerName;
use rustls::unbuffered::ConnectionState;
use rustls::{ConnectionTrafficSecrets, ContentType, ProtocolVersion, SupportedCipherSuite};
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

/// Connects so many clients, each with its first message, before the server gets a turn.
fn at_once(server: &Rig, hello: &[u8], count: usize) -> Vec<UnixStream> {
    let connect = |_| {
        let mut stream = std::os::unix::net::UnixStream::connect(&server.path).unwrap();
        stream.write_all(hello).unwrap();
        stream.set_nonblocking(true).unwrap();
        UnixStream::from_std(stream).unwrap()
    };
    (0..count).map(connect).collect()
}

#[tokio::test]
async fn a_request_waits_for_no_more_than_a_few_handshakes() {
    within(async {
        let server = start(tls().build().unwrap());
        let mut settled = connect(&server, &Arc::new(client_config())).await.unwrap();
        let hello = hello();
        let shaken = Rc::new(Cell::new(0));
        let mut flood = Vec::new();
        for mut client in at_once(&server, &hello, 200) {
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

/// A client that has shaken hands, and makes its records one by one.
struct Records {
    stream: UnixStream,
    encrypter: Box<dyn MessageEncrypter>,
    sequence: u64,
}

impl Records {
    async fn connect(server: &Rig) -> Self {
        let mut config = client_config();
        config.enable_secret_extraction = true;
        let shaken = connect(server, &Arc::new(config)).await.unwrap();
        let (stream, session) = shaken.into_inner();
        let Some(SupportedCipherSuite::Tls13(suite)) = session.negotiated_cipher_suite() else {
            panic!("it is TLS 1.3");
        };
        let (sequence, secrets) = session.dangerous_extract_secrets().unwrap().tx;
        let (ConnectionTrafficSecrets::Aes128Gcm { key, iv }
        | ConnectionTrafficSecrets::Aes256Gcm { key, iv }
        | ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv }) = secrets
        else {
            panic!("there are no others");
        };
        Self {
            stream,
            encrypter: suite.aead_alg.encrypter(key, iv),
            sequence,
        }
    }

    /// Returns a record of this content.
    fn record(&mut self, content: &[u8]) -> Vec<u8> {
        let message = OutboundPlainMessage {
            typ: ContentType::ApplicationData,
            version: ProtocolVersion::TLSv1_2,
            payload: OutboundChunks::Single(content),
        };
        let record = self.encrypter.encrypt(message, self.sequence).unwrap();
        self.sequence += 1;
        record.encode()
    }
}

#[tokio::test]
async fn a_client_that_sends_records_without_content_is_given_up() {
    within(async {
        let server = start(tls().build().unwrap());
        let mut client = Records::connect(&server).await;
        // Some are no harm, nor is a request of a byte in each record.
        let mut sent: Vec<u8> = (0..100).flat_map(|_| client.record(b"")).collect();
        for byte in b"GET / HTTP/1.1\r\nHost: test\r\n\r\n" {
            sent.extend(client.record(&[*byte]));
        }
        client.stream.write_all(&sent).await.unwrap();
        assert!(client.stream.read(&mut [0; 4_096]).await.unwrap() > 0);
        let empty: Vec<u8> = (0..1_000).flat_map(|_| client.record(b"")).collect();
        // It may be closed before all is written.
        let _sent = client.stream.write_all(&empty).await;
        while client
            .stream
            .read(&mut [0; 4_096])
            .await
            .is_ok_and(|bytes| bytes > 0)
        {}
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
        let mut responses = 0;
        for mut client in at_once(&server, &hello, 30) {
            responses += usize::from(client.read(&mut [0; 64]).await.is_ok_and(|read| read > 0));
        }
        assert!((5..30).contains(&responses), "{responses} of 30");
        assert!(connect(&server, &Arc::new(client_config())).await.is_ok());
    })
    .await;
}
