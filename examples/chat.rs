//! A chat: each WebSocket is an actor, and what one says all hear by the system's events.
//!
//! ```sh
//! cargo run -p greenroom-examples --bin chat
//! websocat ws://127.0.0.1:5000/chat/ada
//! ```

use std::time::Duration;

use axum::extract::{Path, State, WebSocketUpgrade};
use axum::response::Response;
use axum::{Router, routing::any};
use greenroom::actor::web::{Frame, Outbox, WebSocketSettings, websocket};
use greenroom::actor::{Actor, ActorSystem, BoxError, Context, Dispatcher, Handler};
use tokio::net::TcpListener;

/// A line of the chat. Events are cloned for each who hears them.
#[derive(Clone)]
struct Said(String);

/// One who is connected.
struct Member {
    name: String,
    /// Holds 64 messages: who reads too slowly for that is disconnected, with code 1008.
    outbox: Outbox<Frame>,
}

impl Actor for Member {
    async fn started(&mut self, context: &mut Context<Self>) -> Result<(), BoxError> {
        let me = context.myself().recipient();
        context.system().events().subscribe::<Said>(me);
        context
            .system()
            .events()
            .publish(Said(format!("{} is here", self.name)));
        Ok(())
    }

    async fn stopped(&mut self, context: &mut Context<Self>) {
        context
            .system()
            .events()
            .publish(Said(format!("{} has left", self.name)));
    }
}

/// From the client. While its messages wait in the mailbox nothing more is read from it.
impl Handler<Frame> for Member {
    type Reply = ();

    fn handle(&mut self, frame: Frame, context: &mut Context<Self>) {
        if let Some(text) = frame.as_text() {
            let said = Said(format!("{}: {text}", self.name));
            context.system().events().publish(said);
        }
    }
}

/// From the others, and from oneself.
impl Handler<Said> for Member {
    type Reply = ();

    fn handle(&mut self, Said(text): Said, _: &mut Context<Self>) {
        // Fails only when the connection is about to end, which stops this actor.
        let _ = self.outbox.tell(text);
    }
}

async fn join(
    upgrade: WebSocketUpgrade,
    Path(name): Path<String>,
    State(system): State<ActorSystem>,
) -> Response {
    let settings = WebSocketSettings::default().frame_bytes_max(4_096);
    let member = move |outbox| Member {
        name: name.clone(),
        outbox,
    };
    websocket(upgrade, &system, &settings, member)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // On the loop of its connection an actor costs no switch of threads.
    let on_loop = Dispatcher::on_loop();
    let system = ActorSystem::builder().dispatcher("loop", on_loop).build()?;
    let app = Router::new()
        .route("/chat/{name}", any(join))
        .with_state(system.clone());

    let address = std::env::args().nth(1);
    let address = address.as_deref().unwrap_or("127.0.0.1:5000");
    let listener = TcpListener::bind(address).await?;
    println!("listening on {}", listener.local_addr()?);
    let ended = async move {
        let _ = tokio::signal::ctrl_c().await;
        // Says goodbye (code 1001) to all who are connected.
        system.shutdown(Duration::from_secs(5)).await;
    };
    greenroom::serve(listener, app)
        .with_graceful_shutdown(ended)
        .await?;
    Ok(())
}
