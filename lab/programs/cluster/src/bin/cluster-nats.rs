//! Bare async-nats: a process that replies to requests, and one that makes them.

use anyhow::{Context, bail};
use async_nats::{Client, ConnectOptions, Message};
use clap::Parser;
use futures_util::StreamExt as _;
use lab_cluster::{DEADLINE, Peer, Questions, TEXT};
use serde::{Deserialize, Serialize};

/// Replies to requests, or makes them.
#[derive(Debug, Parser)]
enum Role {
    /// Replies to requests
    Node { url: String },
    /// Makes requests
    Client {
        url: String,
        #[command(flatten)]
        questions: Questions,
    },
}

/// The message, in the encoding that Greenroom has, too.
#[derive(Debug, Deserialize, Serialize)]
struct Question {
    number: u64,
    text: String,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    match Role::parse() {
        Role::Node { url } => reply(connected(&url).await?).await,
        Role::Client { url, questions } => {
            lab_cluster::run(Bare(connected(&url).await?), &questions).await
        }
    }
}

async fn connected(url: &str) -> anyhow::Result<Client> {
    let options = ConnectOptions::new()
        .retry_on_initial_connect()
        .request_timeout(Some(DEADLINE));
    Ok(options.connect(url).await?)
}

async fn reply(client: Client) -> anyhow::Result<()> {
    let mut requests = client.subscribe("lab.*").await?;
    let mut told = 0_u64;
    while let Some(Message {
        subject,
        reply,
        payload,
        ..
    }) = requests.next().await
    {
        let number = match subject.as_str() {
            "lab.tell" => {
                let _: Question = rmp_serde::from_slice(&payload)?;
                told += 1;
                continue;
            }
            "lab.told" => told,
            _ => rmp_serde::from_slice::<Question>(&payload)?.number + 1,
        };
        let reply = reply.context("a request without a place for its reply")?;
        client
            .publish(reply, rmp_serde::to_vec_named(&number)?.into())
            .await?;
    }
    Ok(())
}

#[derive(Clone, Debug)]
struct Bare(Client);

fn encoded(number: u64) -> anyhow::Result<bytes::Bytes> {
    let text = TEXT.to_owned();
    Ok(rmp_serde::to_vec_named(&Question { number, text })?.into())
}

impl Peer for Bare {
    const HAS_ENTITIES: bool = false;

    async fn ask(&self, number: u64) -> anyhow::Result<u64> {
        let reply = self.0.request("lab.ask", encoded(number)?).await?;
        Ok(rmp_serde::from_slice(&reply.payload)?)
    }

    async fn tell(&self, number: u64) -> anyhow::Result<()> {
        Ok(self.0.publish("lab.tell", encoded(number)?).await?)
    }

    async fn told(&self) -> anyhow::Result<u64> {
        let reply = self.0.request("lab.told", "".into()).await?;
        Ok(rmp_serde::from_slice(&reply.payload)?)
    }

    async fn ask_entity(&self, _: String, _: u64) -> anyhow::Result<u64> {
        bail!("NATS has no entities")
    }

    async fn holder(&self, _: String) -> anyhow::Result<u64> {
        bail!("NATS has no entities")
    }
}
