//! A way to the server that can be cut, while others have theirs.

use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

use greenroom_bus::NatsSettings;

use crate::ports::free_port;
use crate::server::{Server, patient};

/// A forwarder of connections to a server.
pub(crate) struct Wire {
    port: u16,
    server: u16,
    task: Option<JoinHandle<()>>,
}

impl Wire {
    pub(crate) async fn new(server: &Server) -> Self {
        let mut wire = Self {
            port: free_port(),
            server: server.port(),
            task: None,
        };
        wire.mend().await;
        wire
    }

    pub(crate) fn settings(&self) -> NatsSettings {
        patient(&format!("nats://127.0.0.1:{}", self.port))
    }

    /// Ends all connections, and takes no more.
    pub(crate) async fn cut(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
            task.await.expect_err("it was aborted");
        }
    }

    pub(crate) async fn mend(&mut self) {
        let listener = TcpListener::bind(("127.0.0.1", self.port)).await;
        let listener = listener.expect("the port is this test's");
        self.task = Some(tokio::spawn(forward(listener, self.server)));
    }
}

async fn forward(listener: TcpListener, server: u16) {
    let mut connections = JoinSet::new();
    loop {
        let (mut client, _) = listener.accept().await.expect("a connection");
        connections.spawn(async move {
            if let Ok(mut server) = TcpStream::connect(("127.0.0.1", server)).await {
                // Either side may end it.
                let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
            }
        });
    }
}
