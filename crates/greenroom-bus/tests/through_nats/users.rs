//! Log-in: user, token, `NKey`, credentials.

use std::io;
use std::sync::{Mutex, PoisonError};

use greenroom_bus::NatsSettings;

use crate::kit::{failure, publish, subscribe, text};
use crate::server::{Server, impatient};

/// The lines of this process' log with a secret, of which there must be none, and those about a
/// failure to connect.
static LOG: Mutex<String> = Mutex::new(String::new());

struct Log;

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let line = String::from_utf8_lossy(bytes);
        if line.contains("tell") || line.contains("NATS cannot be reached") {
            let mut log = LOG.lock().unwrap_or_else(PoisonError::into_inner);
            log.push_str(&line);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

async fn is_let_in(settings: NatsSettings) {
    let bus = impatient(settings);
    let mut subscription = subscribe(&bus, "/a").await;
    publish(&bus, "/a", "in").await;
    assert_eq!(text(&mut subscription).await, "in");
}

async fn is_kept_out(settings: NatsSettings) {
    let error = failure(&impatient(settings)).await;
    assert!(error.contains("authorization violation"), "{error}");
}

#[tokio::test]
async fn a_user_logs_in_and_no_log_error_or_status_shows_a_password() {
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
        .with_writer(|| Log)
        .finish();
    // No other test of this program installs one.
    tracing_subscriber::util::SubscriberInitExt::try_init(subscriber).expect("the first");
    let server = Server::start_with("authorization { user: ada, password: \"tell/no:one\" }");
    is_let_in(server.settings().login("ada", "tell/no:one")).await;
    let url = format!("nats://ada:tell%2Fno%3Aone@127.0.0.1:{}", server.port());
    is_let_in(NatsSettings::new(&url).expect("an address")).await;
    is_kept_out(server.settings()).await;
    let wrong = server.settings().login("ada", "tell_no_other");
    let debug = format!("{wrong:?}");
    let wrong = impatient(wrong);
    let error = failure(&wrong).await;
    assert!(error.contains("authorization violation"), "{error}");
    let log = LOG.lock().unwrap_or_else(PoisonError::into_inner).clone();
    assert!(log.contains("NATS cannot be reached"), "{log}");
    let status = serde_json::to_string(&wrong.status()).expect("it is plain data");
    for place in [&*log, &*debug, &*error, &*status] {
        assert!(!place.contains("tell"), "{place}");
    }
}

#[tokio::test]
async fn a_token_is_taken_from_the_url_or_the_settings() {
    let server = Server::start_with("authorization { token: \"s3cret\" }");
    is_let_in(server.settings().token("s3cret")).await;
    let url = format!("nats://s3cret@127.0.0.1:{}", server.port());
    is_let_in(NatsSettings::new(&url).expect("an address")).await;
    is_kept_out(server.settings().token("other")).await;
}

#[tokio::test]
async fn an_nkey_signs_the_servers_nonce() {
    let key = nkeys::KeyPair::new_user();
    let server = Server::start_with(&format!(
        "authorization {{ users: [ {{ nkey: {} }} ] }}",
        key.public_key()
    ));
    is_let_in(server.settings().nkey(key.seed().expect("it has one"))).await;
    let other = nkeys::KeyPair::new_user().seed().expect("it has one");
    is_kept_out(server.settings().nkey(other)).await;
}
