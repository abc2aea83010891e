use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::Certificates;

use super::NatsServer;

/// The folder of streams, in the server's directory.
pub(super) const STORE: &str = "store";

/// A configuration of a NATS server, from [`NatsServer::settings`].
#[derive(Clone, Debug, Default)]
pub struct NatsSettings {
    pub(super) has_jet_stream: bool,
    own: String,
    /// Name, cluster's port and routes to the others' of a member of a cluster.
    pub(super) member: Option<Member>,
    /// Names and texts of files that the configuration names.
    files: Vec<(&'static str, String)>,
    pub(super) host: Option<&'static str>,
}

#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) name: String,
    pub(super) port: u16,
    pub(super) routes: Vec<u16>,
}

impl NatsSettings {
    /// Has the server store streams, in a directory that it keeps when it is killed and run again.
    #[must_use]
    pub fn jet_stream(mut self) -> Self {
        self.has_jet_stream = true;
        self
    }

    /// Lets nobody in but this user.
    #[must_use]
    pub fn user(self, user: &str, password: &str) -> Self {
        self.lines(&format!(
            "authorization {{ user: {user:?}, password: {password:?} }}"
        ))
    }

    /// Lets nobody in without TLS; with `verify` nobody without a certificate of the authority
    /// either. Clients reach it at `localhost`, the name in the certificate.
    #[must_use]
    pub fn tls(mut self, certificates: &Certificates, verify: bool) -> Self {
        self.files.extend([
            ("server.pem", certificates.server.clone()),
            ("server.key", certificates.server_key.clone()),
            ("ca.pem", certificates.authority.clone()),
        ]);
        self.host = Some("localhost");
        self.lines(&format!(
            "tls {{ cert_file: server.pem, key_file: server.key, ca_file: ca.pem, \
             verify: {verify} }}"
        ))
    }

    /// Adds lines to the configuration, such as `max_payload: 1024`.
    #[must_use]
    pub fn lines(mut self, lines: &str) -> Self {
        self.own.push_str(lines);
        self.own.push('\n');
        self
    }

    /// Starts a server on a free port, and waits until it is ready.
    #[must_use]
    pub fn start(self) -> NatsServer {
        let mut server = self.prepare();
        while !server.try_run() {
            server.move_ports();
        }
        server
    }

    /// Reserves a port for a server that does not run yet.
    #[must_use]
    pub fn prepare(self) -> NatsServer {
        NatsServer::new(self)
    }

    /// Writes the configuration, and the files that it names, into the directory in which the
    /// server is to run.
    pub(super) fn write(&self, directory: &Path, port: u16, monitor: u16) {
        let mut text = format!("listen: 127.0.0.1:{port}\nhttp: 127.0.0.1:{monitor}\n");
        if self.has_jet_stream {
            // Small bounds: the default is three quarters of the machine's memory and disk.
            let _ = writeln!(
                text,
                "jetstream {{ store_dir: {STORE}, max_memory_store: 64MB, max_file_store: 1GB }}"
            );
        }
        if let Some(Member { name, port, routes }) = &self.member {
            let routes: Vec<_> = routes
                .iter()
                .map(|route| format!("nats-route://127.0.0.1:{route}"))
                .collect();
            let routes = routes.join(", ");
            write!(
                text,
                "server_name: {name}\n\
                 cluster {{ name: test, listen: 127.0.0.1:{port}, routes: [{routes}] }}\n"
            )
            .expect("a string takes all");
        }
        text.push_str(&self.own);
        let config = ("nats.conf", text);
        for (name, text) in self.files.iter().chain([&config]) {
            fs::write(directory.join(name), text).expect("there is room");
        }
    }
}
