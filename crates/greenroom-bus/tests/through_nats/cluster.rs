//! Three servers that know each other, of which one is lost.

use std::time::Duration;

use greenroom_bus::{Bus, Event, NatsSettings, Subscription};
use greenroom_test_servers::{NatsCluster, NatsServer};

use tokio::time::timeout;

use crate::kit::{gap, publish_at_last, subscribe, text, until, within};
use crate::server::{impatient, replay, status};

/// Returns the index of the server that a bus is connected to.
fn server_of(bus: &Bus, cluster: &NatsCluster) -> usize {
    let address = bus.status().nats.expect("it is there").server;
    let address = address.expect("it was connected");
    let is_it = |server: &NatsServer| address.ends_with(&format!(":{}", server.port()));
    cluster.servers.iter().position(is_it).expect("one of them")
}

/// Publishes until the subscription hears it: servers learn a moment later what others' clients
/// have subscribed to.
async fn reaches(bus: &Bus, subscription: &mut Subscription, message: &str) {
    within(async {
        loop {
            publish_at_last(bus, "/a", message).await;
            let heard = timeout(Duration::from_millis(20), subscription.recv()).await;
            let event = heard.ok().flatten();
            let heard = event.as_ref().and_then(Event::message);
            if heard.is_some_and(|heard| heard.payload() == message) {
                return;
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_bus_goes_to_another_server_when_its_own_is_lost() {
    let mut cluster = NatsCluster::start();
    let all = NatsSettings::cluster(cluster.urls().split(',')).expect("addresses");
    // It learns of the others from the first.
    let one = NatsSettings::new(&cluster.servers[0].url()).expect("an address");
    let (here, there) = (impatient(all), impatient(one));
    let mut by_name = subscribe(&there, "/a").await;
    let mut by_pattern = subscribe(&there, "/*").await;
    within(here.connected()).await;
    for subscription in [&mut by_name, &mut by_pattern] {
        reaches(&here, subscription, "before").await;
    }
    assert_eq!(server_of(&there, &cluster), 0);
    cluster.servers[0].kill();
    for subscription in [&mut by_name, &mut by_pattern] {
        gap(subscription).await;
    }
    assert_ne!(server_of(&there, &cluster), 0);
    for subscription in [&mut by_name, &mut by_pattern] {
        reaches(&here, subscription, "after").await;
    }
}

#[tokio::test]
async fn with_replicas_nothing_is_lost_with_a_server() {
    let settings = NatsServer::settings().jet_stream();
    let mut cluster = NatsCluster::start_with(&settings);
    let settings = || {
        let settings = NatsSettings::cluster(cluster.urls().split(',')).expect("addresses");
        settings
            .replay(replay().replicas(3))
            .ping_interval(Duration::from_millis(500))
    };
    let (here, there) = (impatient(settings()), impatient(settings()));
    let mut subscription = subscribe(&there, "/a").await;
    within(here.connected()).await;
    for number in 0..20 {
        publish_at_last(&here, "/a", &number.to_string()).await;
        assert_eq!(text(&mut subscription).await, number.to_string());
    }
    let own = server_of(&there, &cluster);
    cluster.servers[own].kill();
    until(|| status(&there).connections_lost > 0).await;
    for number in 20..40 {
        publish_at_last(&here, "/a", &number.to_string()).await;
    }
    // One whose acknowledgement was lost may have been published twice.
    let mut last = 19;
    while last < 39 {
        let number: u32 = text(&mut subscription).await.parse().expect("a number");
        assert!(
            number == last || number == last + 1,
            "{number} after {last}"
        );
        last = number;
    }
    assert_eq!(there.status().reconnect_gaps, 0);
}
