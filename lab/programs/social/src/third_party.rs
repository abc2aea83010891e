//! A third party that gives tokens, takes shares, and never responds to those.

use std::net::SocketAddrV4;

use anyhow::Context as _;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

const TOKEN: &str = r#"{"access_token":"token","token_type":"bearer","expires_in":3600}"#;

/// Runs until it is killed.
pub(crate) async fn run(address: SocketAddrV4) -> anyhow::Result<Value> {
    let listener = TcpListener::bind(address).await.context("no address")?;
    loop {
        let (socket, _) = listener.accept().await.context("no connection")?;
        // Whoever leaves is served no more.
        tokio::spawn(serve(socket));
    }
}

async fn serve(mut socket: TcpStream) -> std::io::Result<()> {
    let mut request = [0; 4096];
    let read = socket.read(&mut request).await?;
    if String::from_utf8_lossy(&request[..read]).contains(" /token ") {
        let response = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n{TOKEN}",
            TOKEN.len()
        );
        socket.write_all(response.as_bytes()).await?;
        socket.shutdown().await?;
    }
    // Until the other side closes, too: what it still sends does not reset the connection.
    while socket.read(&mut request).await? > 0 {}
    Ok(())
}
