//! A node that moves from one server to another.

use std::time::{Duration, Instant};

use greenroom_actor::ActorSystem;
use greenroom_cluster::{Cluster, ClusterSettings, Remote, RemoteError};
use greenroom_test_servers::{NatsServer, free_port};

use crate::counter::{Counter, CounterRemoteMessages, LONG, spawn};
use crate::gate::Gate;

/// Two servers with a gate before each for the other, and one for a node.
struct Pair {
    servers: [NatsServer; 2],
    routes: [Gate; 2],
    doors: [Gate; 2],
}

impl Pair {
    async fn start() -> Self {
        let routes = [Gate::new().await, Gate::new().await];
        let doors = [Gate::new().await, Gate::new().await];
        let ports: [u16; 2] = std::array::from_fn(|_| free_port());
        let mut servers = [0, 1].map(|index| {
            let (port, own, other) = (ports[index], routes[index].port, routes[1 - index].port);
            routes[index].lead_to(port);
            let settings = NatsServer::settings().jet_stream().lines(&format!(
                "server_name: server{index}\n\
                 cluster {{ name: moves, listen: 127.0.0.1:{port}, pool_size: -1, \
                 advertise: \"127.0.0.1:{own}\", no_advertise: true, \
                 routes: [nats-route://127.0.0.1:{other}] }}"
            ));
            settings.prepare()
        });
        for (server, door) in servers.iter_mut().zip(&doors) {
            server.run();
            door.lead_to(server.port());
        }
        Self {
            servers,
            routes,
            doors,
        }
    }

    /// Connects a node to the first server that is open to it.
    async fn connect(&self, ports: &[u16]) -> Cluster {
        let urls: Vec<_> = ports
            .iter()
            .map(|port| format!("nats://127.0.0.1:{port}"))
            .collect();
        let settings = ClusterSettings::new(&urls.join(",")).expect("addresses");
        // What is held for a while costs no node its life.
        let settings = settings.replicas(1).lease(LONG).connect_timeout(LONG);
        Cluster::connect(settings).await.expect("it connects")
    }

    /// Has the node at the doors move to this server, and waits until it is subscribed there.
    async fn move_to(&self, server: usize, node: &str) {
        self.doors[server].open();
        self.doors[1 - server].shut();
        let deadline = Instant::now() + LONG;
        while !is_subscribed(&self.servers[server], node) {
            assert!(Instant::now() < deadline, "{node} is not at {server}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// Returns `true` if a client of the server takes what is sent to this node.
fn is_subscribed(server: &NatsServer, node: &str) -> bool {
    let told = server.monitor("/connz?subs=1").expect("it runs");
    let connections = told["connections"].as_array().into_iter().flatten();
    let mut subjects = connections
        .filter_map(|connection| connection["subscriptions_list"].as_array())
        .flatten();
    subjects.any(|subject| subject == &format!("greenroom.node.{node}.>"))
}

/// A server that has been cut off still passes on to a node what it was sent for it meanwhile, once
/// the node is back there; and the node has had it from another server by then.
#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_comes_late_is_not_handled_once_more() {
    let pair = Pair::start().await;
    let doors = pair.doors.each_ref().map(|door| door.port);
    pair.doors[1].shut();
    let host = pair.connect(&doors).await;
    let system = ActorSystem::new().expect("a system");
    let counter = spawn(&system, "moving");
    let publication = host.publish("counters", &counter).expect("it is new");
    publication.announced().await;
    let caller = pair.connect(&[pair.servers[1].port()]).await;
    caller.member_known::<Counter>("counters").await;
    let counters: Remote<Counter> = caller.actor("counters").expect("a name");

    pair.routes.iter().for_each(Gate::hold);
    let node = host.status().node;
    pair.move_to(1, &node).await;
    counters.add(1).tell().await.expect("it is known");
    assert_eq!(counters.add(1).ask().await.expect("a reply"), 2);
    pair.move_to(0, &node).await;
    pair.routes.iter().for_each(Gate::open);
    // The second server hears first that the node has left the other one, then that it is back.
    let value = loop {
        match counters.add(1).timeout(LONG).ask().await {
            Err(RemoteError::NoSuch { .. }) => tokio::task::yield_now().await,
            value => break value,
        }
    };
    // It came behind the copies.
    assert_eq!(value.expect("a reply"), 3);
}
