//! TLS and log-in.

use std::io;
use std::sync::{Mutex, PoisonError};

use greenroom_bus::{Bus, RedisSettings};
use greenroom_test_servers::Certificates;

use crate::server::Server;
use crate::{failure, gap, impatient, publish, publish_at_last, subscribe, text, within};

/// The lines of this process' log with a password, of which there must be none, and those about a
/// failure to connect.
static LOG: Mutex<String> = Mutex::new(String::new());

struct Log;

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let line = String::from_utf8_lossy(bytes);
        if line.contains("tell") || line.contains("Redis cannot be reached") {
            let mut log = LOG.lock().unwrap_or_else(PoisonError::into_inner);
            log.push_str(&line);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn settings(server: &Server) -> RedisSettings {
    let url = format!("rediss://localhost:{}", server.port);
    RedisSettings::new(&url).expect("an address")
}

#[tokio::test]
async fn a_server_with_tls_is_spoken_to_also_after_it_was_killed() {
    let certificates = Certificates::new();
    let mut server = Server::start_tls(&certificates, &["--tls-auth-clients", "no"]);
    let bus = || {
        let settings = settings(&server).tls_roots(&*certificates.authority);
        impatient(settings.expect("PEM"))
    };
    let (here, there) = (bus(), bus());
    let mut subscription = subscribe(&there, "/a").await;
    within(here.connected()).await;
    publish(&here, "/a", "before").await;
    assert_eq!(text(&mut subscription).await, "before");
    server.kill();
    server.run();
    gap(&mut subscription).await;
    publish_at_last(&here, "/a", "after").await;
    assert_eq!(text(&mut subscription).await, "after");
}

#[tokio::test]
async fn a_server_that_asks_for_a_certificate_gets_it_or_says_no() {
    let certificates = Certificates::new();
    let server = Server::start_tls(&certificates, &[]);
    let nobody = settings(&server).tls_roots(&*certificates.authority);
    let nobody = nobody.expect("PEM");
    let client = nobody.clone();
    let client = client.tls_identity(&*certificates.client, &*certificates.client_key);
    let client = impatient(client.expect("PEM"));
    let mut subscription = subscribe(&client, "/a").await;
    publish(&client, "/a", "in").await;
    assert_eq!(text(&mut subscription).await, "in");
    let error = failure(&impatient(nobody)).await;
    assert!(!error.is_empty());
}

#[tokio::test]
async fn a_server_that_nobody_vouches_for_is_not_spoken_to() {
    let server = Server::start_tls(&Certificates::new(), &["--tls-auth-clients", "no"]);
    let others = settings(&server).tls_roots(Certificates::new().authority);
    let error = failure(&impatient(others.expect("PEM"))).await;
    assert!(error.contains("certificate"), "{error}");
}

#[tokio::test]
async fn a_certificate_for_another_host_is_not_accepted() {
    let certificates = Certificates::new();
    let server = Server::start_tls(&certificates, &["--tls-auth-clients", "no"]);
    let url = format!("rediss://127.0.0.1:{}", server.port);
    let settings = RedisSettings::new(&url).expect("an address");
    let settings = settings.tls_roots(certificates.authority).expect("PEM");
    let error = failure(&impatient(settings)).await;
    assert!(error.contains("certificate"), "{error}");
}

#[tokio::test]
async fn a_user_logs_in_and_no_log_error_or_status_shows_a_password() {
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
        .with_writer(|| Log)
        .finish();
    // No other test of this program installs one.
    tracing_subscriber::util::SubscriberInitExt::try_init(subscriber).expect("the first");
    let server = Server::start_with(&["--requirepass", "nobody"]);
    let _: () = server.ask_as(
        ":nobody@",
        &["ACL", "SETUSER", "ada", "on", ">tell/no:one", "&*", "+@all"],
    );
    let here = impatient(server.settings().login("ada", "tell/no:one"));
    let url = format!("redis://ada:tell%2Fno%3Aone@127.0.0.1:{}", server.port);
    let there = impatient(RedisSettings::new(&url).expect("an address"));
    let mut subscription = subscribe(&there, "/a").await;
    within(here.connected()).await;
    publish(&here, "/a", "in").await;
    assert_eq!(text(&mut subscription).await, "in");

    let wrong = server.settings().login("ada", "tell_no_other");
    let debug = format!("{wrong:?}");
    let wrong: Bus = impatient(wrong);
    let error = failure(&wrong).await;
    assert!(
        error.contains("WRONGPASS") || error.contains("authentication"),
        "{error}"
    );
    let error_without = failure(&server.bus()).await;
    assert!(error_without.contains("NOAUTH"), "{error_without}");
    let log = LOG.lock().unwrap_or_else(PoisonError::into_inner).clone();
    assert!(log.contains("Redis cannot be reached"), "{log}");
    let status = serde_json::to_string(&wrong.status()).expect("it is plain data");
    for place in [&*log, &*debug, &*error, &*status] {
        assert!(!place.contains("tell"), "{place}");
    }
}
