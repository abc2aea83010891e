//! A third party that gives tokens, takes shares, and never responds.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::Context as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// The time-out of a share, in the program's settings: long enough to be noticed.
const TIMEOUT: &str = "3s";

/// A third party that hangs as long as it lives.
#[derive(Debug)]
pub(crate) struct ThirdParty {
    provider: SocketAddr,
    shares: SocketAddr,
    tasks: [JoinHandle<()>; 2],
}

impl ThirdParty {
    /// Listens on two addresses, on the runtime that calls this.
    pub(crate) async fn start() -> anyhow::Result<Self> {
        let provider = listen().await?;
        let shares = listen().await?;
        Ok(Self {
            provider: provider.local_addr()?,
            shares: shares.local_addr()?,
            tasks: [
                tokio::spawn(give_tokens(provider)),
                tokio::spawn(hang(shares)),
            ],
        })
    }

    /// Returns the program's configuration for it.
    pub(crate) fn toml(&self) -> String {
        format!(
            "[share]\nurl = \"http://{}/shares\"\ntoken_url = \"http://{}/token\"\n\
             client_id = \"social\"\nclient_secret = \"secret\"\ntimeout = \"{TIMEOUT}\"\n",
            self.shares, self.provider
        )
    }
}

impl Drop for ThirdParty {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

async fn listen() -> anyhow::Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .context("no free port")
}

async fn give_tokens(listener: TcpListener) {
    while let Ok((socket, _)) = listener.accept().await {
        tokio::spawn(give_token(socket));
    }
}

/// Responds to any request with a token.
async fn give_token(mut socket: TcpStream) -> std::io::Result<()> {
    let body = r#"{"access_token":"token","token_type":"bearer","expires_in":3600}"#;
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    let mut request = [0; 4096];
    let _ = socket.read(&mut request).await?;
    socket.write_all((head + body).as_bytes()).await?;
    socket.shutdown().await?;
    // Until the client has closed too, so that what it still sends does not reset the connection.
    while socket.read(&mut request).await? > 0 {}
    Ok(())
}

/// Accepts and keeps connections, until the other side closes them.
async fn hang(listener: TcpListener) {
    while let Ok((socket, _)) = listener.accept().await {
        tokio::spawn(keep(socket));
    }
}

async fn keep(mut socket: TcpStream) {
    let mut input = [0; 4096];
    while let Ok(1..) = socket.read(&mut input).await {}
}
