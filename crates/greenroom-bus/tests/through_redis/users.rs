//! Log-in.

use std::io;
use std::sync::{Mutex, PoisonError};

use greenroom_bus::{Bus, RedisSettings};

use crate::kit::{failure, publish, subscribe, text, within};
use crate::server::{Server, impatient};

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
