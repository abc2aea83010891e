//! The clients of experiment `upgrade`, of all kinds, who count each failure while a
//! command upgrades their server again and again; and the application behind proxies.

mod failure;
mod http1;
mod http2;
mod http3;
mod kind;
mod load;
mod tcp;
mod transfer;
mod upgrades;
mod upstream;
mod websocket;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use clap::{Parser, Subcommand};
use tokio::runtime::Builder;
use tokio::task::LocalSet;

/// The body of `/hello`.
const HELLO: &str = "Hello, world!\n";
/// After as many bytes of a download its content begins again.
const CHUNK_BYTES: usize = 64 * 1024;

/// Figures by name.
type Figures = BTreeMap<String, f64>;

#[derive(Debug, Parser)]
struct Options {
    #[command(subcommand)]
    part: Part,
}

#[derive(Debug, Subcommand)]
enum Part {
    /// Makes load, upgrades the server meanwhile, and prints the counts as one line of JSON
    Load(Box<load::Options>),
    /// Serves what is behind servers that have no application
    Upstream {
        #[arg(long, value_parser = loopback)]
        listen: SocketAddr,
    },
}

fn main() -> anyhow::Result<()> {
    let part = Options::parse().part;
    let runtime = Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, async {
        match part {
            Part::Load(options) => {
                let figures = load::run(*options).await?;
                println!("{}", serde_json::to_string(&figures)?);
                Ok(())
            }
            Part::Upstream { listen } => upstream::serve(listen).await,
        }
    })
}

fn loopback(text: &str) -> Result<SocketAddr, String> {
    let address = text.parse::<SocketAddr>();
    let address = address.ok().filter(|address| address.ip().is_loopback());
    address.ok_or_else(|| format!("expected a loopback address and a port, not {text:?}"))
}
