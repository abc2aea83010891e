use crate::ports::free_port;

use super::settings::Member;
use super::{NatsServer, NatsSettings};

/// The number of servers of a cluster: one can be lost.
const SERVERS: usize = 3;

/// Three NATS servers that know each other.
#[derive(Debug)]
pub struct NatsCluster {
    /// The servers, to be killed and run again one by one.
    pub servers: [NatsServer; SERVERS],
}

impl NatsCluster {
    /// Starts three servers without streams, users and TLS.
    #[must_use]
    pub fn start() -> Self {
        Self::start_with(&NatsServer::settings())
    }

    /// Starts three servers with these settings, and waits until each is connected to the others
    /// and, with streams, until they have elected a leader.
    #[must_use]
    pub fn start_with(settings: &NatsSettings) -> Self {
        loop {
            let mut servers = prepare(settings);
            // Another program may have taken a port meanwhile.
            if servers.iter_mut().all(NatsServer::try_run) {
                let cluster = Self { servers };
                cluster.await_whole();
                return cluster;
            }
        }
    }

    /// Waits until each server is connected to the others and, with streams, knows the leader.
    pub fn await_whole(&self) {
        for server in &self.servers {
            server.await_whole(SERVERS - 1);
        }
    }

    /// Returns the addresses of all servers, with commas between, as a client takes them.
    #[must_use]
    pub fn urls(&self) -> String {
        let urls: Vec<_> = self.servers.iter().map(NatsServer::url).collect();
        urls.join(",")
    }
}

fn prepare(settings: &NatsSettings) -> [NatsServer; SERVERS] {
    let ports: [u16; SERVERS] = std::array::from_fn(|_| free_port());
    std::array::from_fn(|index| {
        let mut settings = settings.clone();
        settings.member = Some(Member {
            name: format!("server{}", index + 1),
            port: ports[index],
            routes: ports.to_vec(),
        });
        settings.prepare()
    })
}
