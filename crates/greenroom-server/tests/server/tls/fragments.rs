//! Messages in several records, alerts behind other messages, and ends of all kinds.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream as Blocking;
use std::sync::Arc;
use std::time::Duration;

use greenroom_server::ClientCertificates;
use rustls::crypto::cipher::{
    AeadKey, InboundOpaqueMessage, Iv, MessageDecrypter, MessageEncrypter, OutboundPlainMessage,
};
use rustls::pki_types::ServerName;
use rustls::{
    ClientConfig, ClientConnection, ConnectionTrafficSecrets, ContentType, ProtocolVersion,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::sleep;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::certificates::{Files, with_certificate};
use super::handshakes::{connect, start};
use crate::over::{CERTIFICATES, NAME, client_config, tls};
use crate::rig::{Rig, app, local, settle, text, within};

/// A client whose records are sent one by one, each when the server has seen those before.
struct ByRecord {
    session: ClientConnection,
    socket: Blocking,
}

impl ByRecord {
    fn new(server: &Rig, config: ClientConfig) -> Self {
        let socket = Blocking::connect(&server.path).unwrap();
        socket.set_nonblocking(true).unwrap();
        let name = ServerName::try_from(NAME).unwrap();
        let session = ClientConnection::new(Arc::new(config), name).unwrap();
        Self { session, socket }
    }

    /// Sends all that there is to be sent.
    async fn send(&mut self) {
        let mut output = Vec::new();
        while self.session.wants_write() {
            self.session.write_tls(&mut output).unwrap();
        }
        let mut rest = &output[..];
        while !rest.is_empty() {
            let length = 5 + usize::from(u16::from_be_bytes([rest[3], rest[4]]));
            self.socket.write_all(&rest[..length]).unwrap();
            rest = &rest[length..];
            settle().await;
        }
    }

    /// Reads what has come; `false` at the end.
    fn receive(&mut self) -> bool {
        match self.session.read_tls(&mut self.socket) {
            Ok(0) => return false,
            Ok(_) => {
                self.session.process_new_packets().unwrap();
            }
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock),
        }
        true
    }

    /// Shakes hands.
    async fn shake(&mut self) {
        while self.session.is_handshaking() {
            self.send().await;
            settle().await;
            assert!(self.receive(), "the server has ended the handshake");
        }
        self.send().await;
    }

    async fn ask(&mut self) -> String {
        let request = b"GET / HTTP/1.1\r\nHost: test\r\n\r\n";
        self.session.writer().write_all(request).unwrap();
        self.send().await;
        let mut response = vec![0; 1_024];
        loop {
            match self.session.reader().read(&mut response) {
                Ok(length) => return String::from_utf8_lossy(&response[..length]).into_owned(),
                Err(_) => assert!(self.receive(), "there is no response"),
            }
            settle().await;
        }
    }
}

#[tokio::test]
async fn a_certificate_may_come_in_many_records() {
    within(async {
        let files = Files::new();
        let roots = files.write("roots.pem", &CERTIFICATES.root_pem);
        let required = tls().client_certificates(roots, ClientCertificates::Required);
        let server = start(required.build().unwrap());
        for record_bytes in [64, 300] {
            let mut config = ClientConfig::clone(&with_certificate());
            config.max_fragment_size = Some(record_bytes);
            let mut client = ByRecord::new(&server, config);
            client.shake().await;
            let told = client.ask().await;
            assert!(told.ends_with("certificates:1"), "{told}");
        }
    })
    .await;
}

/// Its link may be slow: the server waits for the rest of a handshake as ever.
#[tokio::test(start_paused = true)]
async fn a_handshake_that_has_begun_is_finished_in_a_drain() {
    local(async {
        let server = start(tls().build().unwrap());
        let mut client = ByRecord::new(&server, client_config());
        client.send().await;
        settle().await;
        server.handle.drain();
        sleep(Duration::from_secs(5)).await;
        client.shake().await;
        let told = client.ask().await;
        assert!(told.contains("TLSv1.3"), "{told}");
        drop(client);
        assert_eq!(server.ended().await.aborted, []);
    })
    .await;
}

/// A client that comes back from another server with this name, whose ticket allows early data. Of
/// such rustls passes over 16 KiB, and counts a record anew with each that comes behind it.
#[tokio::test]
async fn early_data_that_nobody_takes_are_sent_again() {
    within(async {
        let other = other_server();
        let mut config = client_config();
        config.enable_early_data = true;
        let config = Arc::new(config);
        let (theirs, ours) = UnixStream::pair().unwrap();
        let accepting = tokio::task::spawn_local(async move {
            let mut stream = other.accept(theirs).await.unwrap();
            stream.write_all(b"hello").await.unwrap();
            stream.flush().await.unwrap();
            stream
        });
        let name = ServerName::try_from(NAME).unwrap();
        let connector = TlsConnector::from(Arc::clone(&config));
        let mut stream = connector.connect(name, ours).await.unwrap();
        stream.read_exact(&mut [0; 5]).await.unwrap();
        drop(accepting.await.unwrap());

        let server = start(tls().build().unwrap());
        let mut client = ByRecord::new(&server, ClientConfig::clone(&config));
        let mut early = client.session.early_data().expect("the ticket allows it");
        early.write_all(&[b'e'; 1_000]).unwrap();
        client.shake().await;
        assert!(!client.session.is_early_data_accepted());
        let told = client.ask().await;
        assert!(told.contains("resumed:false"), "{told}");
    })
    .await;
}

fn other_server() -> TlsAcceptor {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(CERTIFICATES.chain.clone(), CERTIFICATES.key.clone_key())
        .unwrap();
    config.max_early_data_size = 10_000;
    TlsAcceptor::from(Arc::new(config))
}

/// The server finds out when its first message is made already, and the alert goes behind it.
#[tokio::test]
async fn a_client_learns_that_there_is_no_protocol_for_it() {
    within(async {
        let server = start(tls().build().unwrap());
        let mut config = client_config();
        config.alpn_protocols = vec![b"gopher".to_vec()];
        let error = connect(&server, &Arc::new(config)).await.unwrap_err();
        let error = error.to_string();
        assert!(error.contains("NoApplicationProtocol"), "{error}");
    })
    .await;
}

#[tokio::test]
async fn a_record_that_is_too_long_is_not_waited_for() {
    within(async {
        let server = start(tls().build().unwrap());
        for head in [[22, 3, 1, 0x48, 1], [22, 3, 3, 0xff, 0xff]] {
            let mut client = UnixStream::connect(&server.path).await.unwrap();
            client.write_all(&head).await.unwrap();
            let mut alert = Vec::new();
            client.read_to_end(&mut alert).await.unwrap();
            assert!(matches!(alert[..], [21, 3, _, 0, 2, 2, _]), "{alert:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_client_that_takes_leave_gets_its_response() {
    within(async {
        let server = Rig::with(app(async |_| Ok(text("hello"))), |builder| {
            builder.tls(tls().build().unwrap())
        });
        let config = Arc::new(client_config());
        for requests in 0..3 {
            let mut stream = connect(&server, &config).await.unwrap();
            for _ in 0..requests {
                stream
                    .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                    .await
                    .unwrap();
                assert!(stream.read(&mut [0; 1_024]).await.unwrap() > 0);
            }
            stream.shutdown().await.unwrap();
            // It is an error if the end comes without notice.
            assert_eq!(stream.read(&mut [0; 64]).await.unwrap(), 0);
        }
    })
    .await;
}

/// The beginning of a message that never ends stays where the session keeps it.
#[tokio::test]
async fn a_client_that_breaks_off_within_a_message_gets_its_response() {
    within(async {
        let handler = app(async |_| {
            // By then the server has seen the end.
            settle().await;
            Ok(text("hello"))
        });
        let server = Rig::with(handler, |builder| builder.tls(tls().build().unwrap()));
        let mut config = client_config();
        config.enable_secret_extraction = true;
        let mut client = ByRecord::new(&server, config);
        client.shake().await;
        let mut forger = Forger::new(client);
        let request = b"GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n";
        forger.send(ContentType::ApplicationData, request);
        // Half of the head of a message for new keys (RFC 8446, 4.6.3).
        forger.send(ContentType::Handshake, &[24, 0]);
        forger.socket.shutdown(std::net::Shutdown::Write).unwrap();
        let response = forger.rest().await;
        assert!(response.ends_with("hello"), "{response}");
    })
    .await;
}

/// A client that sends records of any kind.
struct Forger {
    socket: Blocking,
    sending: (u64, Box<dyn MessageEncrypter>),
    receiving: (u64, Box<dyn MessageDecrypter>),
}

impl Forger {
    fn new(client: ByRecord) -> Self {
        let suite = client.session.negotiated_cipher_suite().unwrap();
        let aead = suite.tls13().expect("TLS 1.3").aead_alg;
        let secrets = client.session.dangerous_extract_secrets().unwrap();
        let (sent, (key, iv)) = (secrets.tx.0, of_aes_128(secrets.tx.1));
        let sending = (sent, aead.encrypter(key, iv));
        let (received, (key, iv)) = (secrets.rx.0, of_aes_128(secrets.rx.1));
        Self {
            socket: client.socket,
            sending,
            receiving: (received, aead.decrypter(key, iv)),
        }
    }

    fn send(&mut self, typ: ContentType, content: &[u8]) {
        let message = OutboundPlainMessage {
            typ,
            version: ProtocolVersion::TLSv1_2,
            payload: content.into(),
        };
        let (sequence, encrypter) = &mut self.sending;
        let record = encrypter.encrypt(message, *sequence).unwrap().encode();
        *sequence += 1;
        self.socket.write_all(&record).unwrap();
    }

    /// The content of all records up to the end of the connection.
    async fn rest(&mut self) -> String {
        let mut input = Vec::new();
        while self.socket.read_to_end(&mut input).is_err() {
            settle().await;
        }
        let mut rest = &mut input[..];
        let mut content = Vec::new();
        while let Some((head, more)) = rest.split_at_mut_checked(5) {
            let length = usize::from(u16::from_be_bytes([head[3], head[4]]));
            let (record, more) = more.split_at_mut(length);
            rest = more;
            let (typ, version) = (ContentType::ApplicationData, ProtocolVersion::TLSv1_2);
            let record = InboundOpaqueMessage::new(typ, version, record);
            let (sequence, decrypter) = &mut self.receiving;
            let message = decrypter.decrypt(record, *sequence).unwrap();
            *sequence += 1;
            if message.typ == ContentType::ApplicationData {
                content.extend_from_slice(message.payload);
            }
        }
        String::from_utf8(content).unwrap()
    }
}

fn of_aes_128(secrets: ConnectionTrafficSecrets) -> (AeadKey, Iv) {
    match secrets {
        ConnectionTrafficSecrets::Aes128Gcm { key, iv } => (key, iv),
        _ => panic!("the server prefers AES-128"),
    }
}
