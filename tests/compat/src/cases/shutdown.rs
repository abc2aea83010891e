//! Connections during a shutdown of the server.

use std::convert::Infallible;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::routing::get as on_get;
use futures_util::future::{BoxFuture, FutureExt};
use futures_util::{StreamExt, stream};
use tokio::net::TcpStream;
use tokio::time::sleep;

use crate::harness::{App, Case, Client, Ending, Rig, Step, get};

pub(crate) fn cases() -> Vec<Case> {
    let case = |name, script| Case::script(name, App::Router(app), script);
    vec![
        case("shutdown/idle", idle),
        case("shutdown/of-a-request-under-way", under_way),
        case("shutdown/of-a-stream", streaming),
        case("shutdown/with-a-request-pipelined", pipelined),
        case("shutdown/unused", unused),
    ]
}

fn app(rig: Rig) -> Router {
    let (slow, streamed) = (rig.clone(), rig);
    let slow = move || async move {
        slow.note("begun");
        slow.released().await;
        "slow"
    };
    let streamed = move || async move {
        let parts = stream::iter(["one", "two"]).then(move |part| {
            let rig = streamed.clone();
            async move {
                rig.released().await;
                Ok::<_, Infallible>(part)
            }
        });
        Body::from_stream(parts)
    };
    Router::new()
        .route("/", on_get(|| async { "hello" }))
        .route("/slow", on_get(slow))
        .route("/stream", on_get(streamed))
}

fn bytes(step: &Step) -> &[u8] {
    match step {
        Step::Send(bytes) => bytes,
        other => panic!("{other:?} has no bytes"),
    }
}

/// Shuts down the server, and waits until it takes no connections.
async fn shut_down(client: &mut Client) {
    client.shut_down();
    while TcpStream::connect(client.address).await.is_ok() {
        sleep(Duration::from_millis(1)).await;
    }
    client.say("no connections are taken");
}

fn idle(client: &mut Client) -> BoxFuture<'_, Result<(), Ending>> {
    async move {
        let mut wire = client.connect().await;
        wire.send(bytes(&get("/"))).await?;
        wire.response(&mut client.log).await?;
        shut_down(client).await;
        wire.ended(&mut client.log).await
    }
    .boxed()
}

fn unused(client: &mut Client) -> BoxFuture<'_, Result<(), Ending>> {
    async move {
        shut_down(client).await;
        Ok(())
    }
    .boxed()
}

fn under_way(client: &mut Client) -> BoxFuture<'_, Result<(), Ending>> {
    async move {
        let mut wire = client.connect().await;
        wire.send(bytes(&get("/slow"))).await?;
        client.note().await?;
        shut_down(client).await;
        client.release();
        wire.response(&mut client.log).await?;
        wire.ended(&mut client.log).await
    }
    .boxed()
}

fn streaming(client: &mut Client) -> BoxFuture<'_, Result<(), Ending>> {
    async move {
        let mut wire = client.connect().await;
        wire.send(bytes(&get("/stream"))).await?;
        wire.head(&mut client.log).await?;
        client.release();
        wire.chunk(&mut client.log).await?;
        shut_down(client).await;
        client.release();
        wire.chunk(&mut client.log).await?;
        wire.chunk(&mut client.log).await?;
        wire.ended(&mut client.log).await
    }
    .boxed()
}

fn pipelined(client: &mut Client) -> BoxFuture<'_, Result<(), Ending>> {
    async move {
        let mut wire = client.connect().await;
        let both = [bytes(&get("/slow")), bytes(&get("/"))].concat();
        wire.send(&both).await?;
        client.note().await?;
        shut_down(client).await;
        client.release();
        wire.response(&mut client.log).await?;
        wire.ended(&mut client.log).await
    }
    .boxed()
}
