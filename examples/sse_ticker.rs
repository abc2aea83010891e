//! Server-sent events: a tick in each interval, and a last event when the server drains.
//!
//! ```sh
//! cargo run -p greenroom-examples --bin sse_ticker
//! curl -N http://127.0.0.1:5000/ticks?millis=500
//! ```

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::Query;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::{Router, routing::get};
use futures_util::{Stream, StreamExt, stream};
use greenroom::Draining;
use serde::Deserialize;
use tokio::net::TcpListener;
use tokio::time::{MissedTickBehavior, interval};

#[derive(Deserialize)]
struct Pace {
    millis: Option<u64>,
}

async fn ticks(
    Query(pace): Query<Pace>,
    draining: Draining,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    // A client chooses its pace within bounds that cost us little.
    let millis = pace.millis.unwrap_or(1_000).clamp(10, 60_000);
    let mut clock = interval(Duration::from_millis(millis));
    // A client that reads slowly gets fewer ticks, not all of the missed ones at once.
    clock.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let ticks = stream::unfold((clock, 1_u64), |(mut clock, number)| async move {
        clock.tick().await;
        let event = Event::default().event("tick").id(number.to_string());
        Some((event.data(format!("tick {number}")), (clock, number + 1)))
    });
    // Without this the stream would hold up the drain until its deadline.
    let last = stream::once(async { Event::default().event("restart").data("come again") });
    let events = ticks.take_until(draining).chain(last).map(Ok);
    Sse::new(events).keep_alive(KeepAlive::default())
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let app = Router::new().route("/ticks", get(ticks));

    let address = std::env::args().nth(1);
    let address = address.as_deref().unwrap_or("127.0.0.1:5000");
    let listener = TcpListener::bind(address).await?;
    println!("listening on {}", listener.local_addr()?);
    let ended = async {
        let _ = tokio::signal::ctrl_c().await;
    };
    greenroom::serve(listener, app)
        .with_graceful_shutdown(ended)
        .await
}
