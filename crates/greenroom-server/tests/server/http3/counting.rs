//! The metrics of connections that are refused.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use greenroom_server::Limits;
use metrics::{
    Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit,
    set_default_local_recorder,
};
use parking_lot::Mutex;

use super::handler;
use super::rig::{Client, Rig, client};
use crate::rig::{app, within};

/// Keeps counters that have labels, by what these say.
#[derive(Default)]
pub(super) struct Counts(Mutex<BTreeMap<String, Arc<AtomicU64>>>);

impl Counts {
    /// Returns what was declined, and how often.
    pub(super) fn declined(&self) -> Vec<(String, u64)> {
        let counts = self.0.lock();
        let of_declined = |(labels, count): (&String, &Arc<AtomicU64>)| {
            let labels = labels.strip_prefix("greenroom_loop_declined_total")?;
            Some((labels.to_owned(), count.load(Ordering::Relaxed)))
        };
        counts.iter().filter_map(of_declined).collect()
    }
}

impl Recorder for Counts {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        let labels = key.labels().map(|label| format!(" {}", label.value()));
        let named = key.name().to_owned() + &labels.collect::<String>();
        let mut counts = self.0.lock();
        Counter::from_arc(Arc::clone(counts.entry(named).or_default()))
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

/// Has a client refused by a server that serves one already, and returns what was counted.
async fn refused_beside_another(limits: Limits) -> Vec<(String, u64)> {
    let counts = Counts::default();
    // All of a server is on this thread.
    let _recording = set_default_local_recorder(&counts);
    within(async {
        let server = Rig::limited(app(handler), limits);
        let first = server.connect().await;
        assert_eq!(first.get("/1").await.0, 200);
        assert_eq!(counts.declined(), []);
        let second = Client::connect(server.address, client()).await;
        if let Ok(mut second) = second {
            // It is told once its handshake is over.
            let _closed = (&mut second.driver).await;
        }
        assert_eq!(first.get("/2").await.0, 200);
    })
    .await;
    counts.declined()
}

pub(super) fn assert_counted(counted: &[(String, u64)], labels: &str) {
    // A first message of two datagrams may be refused twice.
    let is_counted = matches!(counted, [(found, 1..=4)] if found == labels);
    assert!(is_counted, "{counted:?}");
}

#[tokio::test]
async fn connections_beyond_all_that_may_be_are_counted() {
    let limits = Limits {
        connections_max: 1,
        ..Limits::default()
    };
    assert_counted(&refused_beside_another(limits).await, " quic connections");
}

#[tokio::test]
async fn connections_beyond_those_of_an_address_are_counted() {
    let limits = Limits {
        address_connections_max: 1,
        ..Limits::default()
    };
    let counted = refused_beside_another(limits).await;
    assert_counted(&counted, " loop-0 address_connections");
}
