//! Log-in: user, token, `NKey`, credentials.

use std::io;
use std::sync::{Mutex, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use greenroom_bus::NatsSettings;
use nkeys::KeyPair;
use serde_json::json;

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
    let key = KeyPair::new_user();
    let server = Server::start_with(&format!(
        "authorization {{ users: [ {{ nkey: {} }} ] }}",
        key.public_key()
    ));
    is_let_in(server.settings().nkey(key.seed().expect("it has one"))).await;
    let other = KeyPair::new_user().seed().expect("it has one");
    is_kept_out(server.settings().nkey(other)).await;
}

/// Returns a token that `issuer` signs: what `nsc` writes of an operator, an account or a user.
fn token(issuer: &KeyPair, subject: &KeyPair, kind: &str) -> String {
    let encode = |value: serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let limits = match kind {
        "account" => json!({ "limits": { "subs": -1, "data": -1, "payload": -1, "conn": -1,
            "leaf": -1, "imports": -1, "exports": -1, "wildcards": true } }),
        "user" => json!({ "subs": -1, "data": -1, "payload": -1 }),
        _ => json!({}),
    };
    let mut nats = limits;
    nats["type"] = kind.into();
    nats["version"] = 2.into();
    let head = encode(json!({ "typ": "JWT", "alg": "ed25519-nkey" }));
    let claims = encode(json!({
        "jti": kind,
        "iat": 1,
        "iss": issuer.public_key(),
        "sub": subject.public_key(),
        "name": kind,
        "nats": nats,
    }));
    let signature = issuer.sign(format!("{head}.{claims}").as_bytes());
    let signature = URL_SAFE_NO_PAD.encode(signature.expect("it has a seed"));
    format!("{head}.{claims}.{signature}")
}

#[tokio::test]
async fn a_file_of_credentials_has_a_token_and_the_seed_that_proves_it() {
    let (operator, account) = (KeyPair::new_operator(), KeyPair::new_account());
    let user = KeyPair::new_user();
    let server = Server::start_with(&format!(
        "operator: {}\nresolver: MEMORY\nresolver_preload: {{ {}: {} }}",
        token(&operator, &operator, "operator"),
        account.public_key(),
        token(&operator, &account, "account"),
    ));
    let credentials = |seed: &KeyPair| {
        format!(
            "-----BEGIN NATS USER JWT-----\n{}\n------END NATS USER JWT------\n\n\
             -----BEGIN USER NKEY SEED-----\n{}\n------END USER NKEY SEED------\n",
            token(&account, &user, "user"),
            seed.seed().expect("it has one"),
        )
    };
    let directory = tempfile::TempDir::new().expect("a directory");
    let file = directory.path().join("user.creds");
    std::fs::write(&file, credentials(&user)).expect("there is room");
    is_let_in(
        server
            .settings()
            .credentials_file(&file)
            .expect("credentials"),
    )
    .await;
    std::fs::write(&file, credentials(&KeyPair::new_user())).expect("there is room");
    is_kept_out(
        server
            .settings()
            .credentials_file(&file)
            .expect("credentials"),
    )
    .await;
    std::fs::write(&file, "nothing").expect("there is room");
    assert!(server.settings().credentials_file(&file).is_err());
}
