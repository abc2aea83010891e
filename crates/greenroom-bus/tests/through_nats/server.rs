//! A NATS server of the test's own.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use greenroom_bus::{Bus, NatsSettings, RemoteStatus, ReplaySettings};
use greenroom_test_servers::{Certificates, NatsServer};

pub(crate) struct Server(NatsServer);

/// The clients that a server with TLS lets in.
#[derive(Clone, Copy)]
pub(crate) enum Clients {
    Anybody,
    /// With a certificate of the authority.
    Signed,
}

/// Connects with short waits, so that the tests are short.
pub(crate) fn impatient(settings: NatsSettings) -> Bus {
    let millis = Duration::from_millis;
    Bus::nats(settings.backoff(millis(5), millis(50))).expect("a thread")
}

/// Returns settings with waits for the server that are long enough on a machine that is busy with
/// other things.
pub(crate) fn patient(url: &str) -> NatsSettings {
    let settings = NatsSettings::new(url).expect("an address");
    let long = Duration::from_secs(30);
    settings.connect_timeout(long).command_timeout(long)
}

pub(crate) fn status(bus: &Bus) -> RemoteStatus {
    bus.status().nats.expect("it is there").remote
}

impl Server {
    /// The subjects of `/a`, `/*` and `/**`.
    pub(crate) const CHANNELS_OF_A: usize = 3;

    pub(crate) fn start() -> Self {
        Self(NatsServer::start())
    }

    /// Starts a server that stores streams.
    pub(crate) fn start_storing() -> Self {
        Self(NatsServer::settings().jet_stream().start())
    }

    pub(crate) fn start_with(lines: &str) -> Self {
        Self(NatsServer::settings().lines(lines).start())
    }

    /// Reserves a port for a server with such lines in its configuration.
    pub(crate) fn prepared_with(lines: &str) -> Self {
        Self(NatsServer::settings().lines(lines).prepare())
    }

    pub(crate) fn start_tls(certificates: &Certificates, clients: Clients) -> Self {
        let verify = matches!(clients, Clients::Signed);
        Self(NatsServer::settings().tls(certificates, verify).start())
    }

    /// Reserves a port for a server that does not run yet.
    pub(crate) fn prepared() -> Self {
        Self(NatsServer::settings().prepare())
    }

    pub(crate) fn settings(&self) -> NatsSettings {
        patient(&self.url())
    }

    /// Returns settings with a replay, in a stream for this test alone.
    pub(crate) fn replaying(&self) -> NatsSettings {
        self.settings().replay(replay())
    }

    pub(crate) fn tls_settings(&self, host: &str) -> NatsSettings {
        let url = format!("tls://{host}:{}", self.port());
        NatsSettings::new(&url).expect("an address")
    }

    pub(crate) fn bus(&self) -> Bus {
        Bus::nats(self.settings()).expect("a thread")
    }

    /// Counts the connections of buses.
    pub(crate) fn connections(&self) -> usize {
        self.count("/connz", "num_connections")
    }

    /// Returns a number that the monitoring port tells.
    pub(crate) fn count(&self, path: &str, name: &str) -> usize {
        let told = self.monitor(path).expect("it runs");
        let number = told[name].as_u64().expect("a number");
        usize::try_from(number).expect("it is small")
    }
}

pub(crate) fn replay() -> ReplaySettings {
    ReplaySettings::new("BUS").expect("a name")
}

impl Deref for Server {
    type Target = NatsServer;

    fn deref(&self) -> &NatsServer {
        &self.0
    }
}

impl DerefMut for Server {
    fn deref_mut(&mut self) -> &mut NatsServer {
        &mut self.0
    }
}
