//! Idle connections, each of which has had its response.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use clap::Parser;
use rustls::client::Resumption;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;

use crate::tls::{Offer, server_name};
use crate::{Target, response};

const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);
/// Longer than the time between two looks at the server's memory.
const HOLD: Duration = Duration::from_millis(600);
/// Addresses that connections come from.
const SOURCES: u8 = 4;

#[derive(Debug, Parser)]
pub(crate) struct Options {
    #[command(flatten)]
    target: Target,
    /// Number of connections, one opened after the other
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=19_900))]
    connections: u32,
    /// Speaks TLS, each connection with a full handshake
    #[arg(long)]
    tls: bool,
}

pub(crate) async fn run(options: &Options) -> anyhow::Result<Value> {
    let mut config = Offer::Browser.config()?;
    config.resumption = Resumption::disabled();
    let connector = options.tls.then(|| TlsConnector::from(Arc::new(config)));
    let mut held = Vec::new();
    for index in 0..options.connections {
        let opened = timeout(
            RESPONSE_TIMEOUT,
            open(&options.target, connector.as_ref(), index),
        );
        held.push(opened.await.context("no response in time")??);
    }
    sleep(HOLD).await;
    for stream in &held {
        // Of TLS there may be tickets to read, but an end is an end.
        let ended = matches!(stream.try_read(&mut [0; 4096]), Ok(0));
        ensure!(!ended, "the server closed an idle connection");
    }
    Ok(json!({ "complete": held.len() }))
}

/// Opens a connection that has its response. Nothing more is sent on it, so its keys are not kept.
async fn open(
    target: &Target,
    connector: Option<&TlsConnector>,
    index: u32,
) -> anyhow::Result<TcpStream> {
    let mut stream = target.connect(index, SOURCES).await?;
    let request = target.request("GET", "", "");
    let head = match connector {
        None => {
            stream.write_all(&request).await?;
            response::read(&mut stream).await?
        }
        Some(connector) => {
            let name = server_name(target.address);
            let mut stream = connector.connect(name, &mut stream).await?;
            stream.write_all(&request).await?;
            stream.flush().await?;
            response::read(&mut stream).await?
        }
    };
    ensure!(head.status == 200 && head.keeps, "{head:?}");
    Ok(stream)
}
