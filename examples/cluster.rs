//! Counters that live somewhere: one activation of each in the whole cluster, wherever it is asked.
//!
//! ```sh
//! cargo run -p greenroom-examples --bin cluster       # alone, or three times with NATS:
//! nats-server -js &
//! cargo run -p greenroom-examples --bin cluster 127.0.0.1:5000 nats://127.0.0.1:4222
//! cargo run -p greenroom-examples --bin cluster 127.0.0.1:5002 nats://127.0.0.1:4222
//! curl -X POST http://127.0.0.1:5000/counters/visits  # 1
//! curl -X POST http://127.0.0.1:5002/counters/visits  # 2, also if the first one was killed
//! ```

use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::{Router, routing::post};
use greenroom::Server;
use greenroom::actor::{Actor, ActorSystem, messages};
use greenroom::cluster::{
    Activation, Cluster, ClusterSettings, Entity, EntityId, Remote, RemoteError, StateError, Stored,
};

struct Counter {
    value: Stored<u64>,
}

impl Actor for Counter {}

impl Entity for Counter {
    type State = u64;
}

#[messages(remote = "counter.v1")]
impl Counter {
    fn new(activation: Activation<u64>) -> Self {
        Self {
            value: activation.state,
        }
    }

    /// Adds one, and returns the value once it is saved.
    #[message]
    async fn count(&mut self) -> Result<u64, StateError> {
        self.value.update(|value| *value += 1).await?;
        Ok(*self.value)
    }
}

async fn count(State(cluster): State<Cluster>, Path(name): Path<String>) -> (StatusCode, String) {
    let id = match EntityId::new(name) {
        Ok(id) => id,
        Err(error) => return (StatusCode::BAD_REQUEST, format!("{error}\n")),
    };
    let counted = async {
        let counter: Remote<Counter> = cluster.entity(id)?;
        counter.count().ask().await
    };
    match counted.await {
        Ok(Ok(value)) => (StatusCode::OK, format!("{value}\n")),
        Ok(Err(error)) => (StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")),
        // It may have been counted or not: who must know sends a durable message.
        Err(error @ RemoteError::Late { .. }) => {
            (StatusCode::GATEWAY_TIMEOUT, format!("{error}\n"))
        }
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().unwrap_or("127.0.0.1:5000".into());
    let cluster = match arguments.next() {
        Some(servers) => Cluster::connect(ClusterSettings::new(&servers)?).await?,
        None => Cluster::local(),
    };
    let system = ActorSystem::new()?;
    let hosting = cluster.host(&system, Counter::new)?;
    let app = Router::new()
        .route("/counters/{name}", post(count))
        .with_state(cluster.clone());
    let server = Server::builder().listen(&*address).shutdown_on_signals();
    let server = server.cluster(&cluster).bind()?;
    println!("listening on {}", server.local_addresses()[0]);
    server.serve(app).await?;
    // Its counters are free at once, and the next node need not wait for the end of a lease.
    hosting.leave(Duration::from_secs(10)).await;
    cluster.drain(Duration::from_secs(5)).await;
    Ok(())
}
