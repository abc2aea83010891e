use std::sync::Arc;

use greenroom_server::rustls::ClientConfig;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use parking_lot::RwLock;
use tokio::runtime::{self, Handle};

use super::connect::Connector;
use crate::address::UpstreamAddress;
use crate::settings::Settings;
use crate::tls::Secured;
use crate::upload::UploadBody;

/// Most bytes of the head of a response, and of the buffer for its body: 64 KiB.
const HEAD_BYTES_MAX: usize = 65_536;

/// Most runtimes with connections of their own; beyond it those of the oldest are given up.
const RUNTIMES_MAX: usize = 256;

pub(crate) type HyperClient = Client<Connector, UploadBody>;

/// The connections to an upstream: a pool for each runtime, which is a loop of the server. So a
/// request and its connection are polled by one thread, and no loop's end breaks the connections
/// that others use.
pub(super) struct Clients {
    connector: Connector,
    idle_timeout: std::time::Duration,
    idle_max: usize,
    by_runtime: RwLock<Vec<(runtime::Id, HyperClient)>>,
}

impl Clients {
    pub(super) fn new(
        address: &UpstreamAddress,
        settings: &Settings,
        tls: Option<&Arc<ClientConfig>>,
    ) -> Self {
        let secured = Secured::of(address, settings, tls);
        Self {
            connector: Connector::new(address, secured, settings.connect_timeout),
            idle_timeout: settings.idle_timeout,
            idle_max: settings.idle_max,
            by_runtime: RwLock::default(),
        }
    }

    /// Returns the client of the calling thread's runtime.
    pub(super) fn current(&self) -> HyperClient {
        let runtime = Handle::current().id();
        let of_runtime = |(id, _): &&(runtime::Id, HyperClient)| *id == runtime;
        let found = self.by_runtime.read().iter().find(of_runtime).cloned();
        if let Some((_, client)) = found {
            return client;
        }
        let mut clients = self.by_runtime.write();
        // Another thread of this runtime may have been faster.
        if let Some((_, client)) = clients.iter().find(of_runtime) {
            return client.clone();
        }
        if clients.len() == RUNTIMES_MAX {
            clients.remove(0);
        }
        let client = self.client();
        clients.push((runtime, client.clone()));
        client
    }

    fn client(&self) -> HyperClient {
        Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(self.idle_timeout)
            .pool_max_idle_per_host(self.idle_max)
            .http1_max_buf_size(HEAD_BYTES_MAX)
            .set_host(false)
            .build(self.connector.clone())
    }

    /// Has the upstream's name resolved for the next connection.
    pub(super) fn resolve_again(&self) {
        self.connector.resolve_again();
    }
}
