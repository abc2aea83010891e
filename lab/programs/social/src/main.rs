//! The clients of the social network that the lab's own loads cannot be. Each prints one line of
//! JSON at its end. Load goes to loopback only, and is bounded in count and time.

mod api;
mod feed;
mod kill;
mod replicas;
mod third_party;
mod uploads;

use std::net::SocketAddrV4;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::api::{Client, Site};

#[derive(Debug, Parser)]
struct Options {
    /// Address of the site, on loopback
    #[arg(value_parser = loopback)]
    server: SocketAddrV4,
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Adds small pictures of one user, and users who will like them; notes all in files
    Fill(Fill),
    /// Sums up the likes of the file's pictures
    Count { file: PathBuf },
    /// Reads the timeline while large pictures are uploaded to the file's album at once
    Uploads(uploads::Options),
    /// Thousands of clients of the feed, and users whose likes it tells them
    Feed(feed::Options),
    /// Kills a replica behind a balancer, under load
    Kill(kill::Options),
    /// Listens there instead: gives tokens, takes all else, and never responds
    ThirdParty,
}

#[derive(Debug, Args)]
struct Fill {
    file: PathBuf,
    #[arg(long)]
    pictures: usize,
    #[arg(long, default_value_t = 0)]
    likers: usize,
}

#[tokio::main(flavor = "multi_thread", worker_threads = 1)]
async fn main() -> anyhow::Result<()> {
    let Options { server, what } = Options::parse();
    let client = Client::new(server)?;
    let figures = match what {
        What::Fill(fill) => {
            let site = Site::fill(&client, fill.pictures).await?;
            site.write(&fill.file, &client, fill.likers).await?
        }
        What::Count { file } => Site::read(&file)?.count(&client).await?,
        What::Uploads(uploads) => uploads.run(&client).await?,
        What::Feed(feed) => feed.run(server).await?,
        What::Kill(kill) => kill.run(&client).await?,
        What::ThirdParty => third_party::run(server).await?,
    };
    println!("{figures}");
    Ok(())
}

fn loopback(text: &str) -> Result<SocketAddrV4, String> {
    match text.parse::<SocketAddrV4>() {
        Ok(address) if address.ip().is_loopback() => Ok(address),
        Ok(_) => Err("load goes only to loopback addresses".to_owned()),
        Err(_) => Err(format!("expected an IPv4 address and a port, not {text:?}")),
    }
}
