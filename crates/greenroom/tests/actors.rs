//! Connections as actors under `greenroom::serve`.
#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::extract::{State, WebSocketUpgrade};
use axum::response::Response;
use axum::routing::any;
use futures_util::{SinkExt, StreamExt};
use greenroom::Server;
use greenroom_actor::web::{Frame, Outbox, WebSocketSettings, websocket};
use greenroom_actor::{Actor, ActorSystem, Context, Dispatcher, Handler};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, client_async};

/// Replies with the name of the thread that it runs on.
struct Where(Outbox<Frame>);

impl Actor for Where {}

impl Handler<Frame> for Where {
    type Reply = ();

    fn handle(&mut self, _: Frame, _: &mut Context<Self>) {
        let thread = std::thread::current();
        let _ = self.0.tell(thread.name().unwrap_or("?"));
    }
}

async fn connect(upgrade: WebSocketUpgrade, State(system): State<ActorSystem>) -> Response {
    websocket(upgrade, &system, &WebSocketSettings::default(), Where)
}

async fn open(address: SocketAddr) -> WebSocketStream<TcpStream> {
    let stream = TcpStream::connect(address).await.unwrap();
    let (socket, _) = client_async(format!("ws://{address}/ws"), stream)
        .await
        .unwrap();
    socket
}

#[tokio::test]
async fn a_websocket_is_an_actor_on_the_loop_of_its_connection() {
    let test = async {
        let system = ActorSystem::builder()
            .dispatcher("loop", Dispatcher::on_loop())
            .build()
            .unwrap();
        let app = axum::Router::new()
            .route("/ws", any(connect))
            .with_state(system.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (end, ended) = oneshot::channel::<()>();
        let serving = tokio::spawn(async move {
            let serve = greenroom::serve(listener, app).with_graceful_shutdown(async {
                let _ = ended.await;
            });
            serve.report().await.unwrap()
        });
        let mut clients = Vec::new();
        for _ in 0..8 {
            clients.push(open(address).await);
        }
        for client in &mut clients {
            client.send(Message::text("where are you?")).await.unwrap();
            let response = client.next().await.unwrap().unwrap().into_text().unwrap();
            assert!(response.starts_with("loop-"), "on {response}");
        }
        assert!(system.shutdown(Duration::from_secs(30)).await.is_clean());
        for mut client in clients {
            let Message::Close(Some(frame)) = client.next().await.unwrap().unwrap() else {
                panic!("no close frame with a code");
            };
            assert_eq!(u16::from(frame.code), 1001);
            assert!(client.next().await.is_none());
        }
        end.send(()).unwrap();
        assert_eq!(serving.await.unwrap().aborted, []);
    };
    timeout(Duration::from_mins(1), test)
        .await
        .expect("the test hangs");
}

/// Counts its messages, a moment for each, into what outlives it.
struct Slow(Arc<AtomicUsize>);

impl Actor for Slow {}

impl Handler<()> for Slow {
    type Reply = ();

    fn handle(&mut self, (): (), _: &mut Context<Self>) {
        std::thread::sleep(Duration::from_millis(1));
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn a_system_that_is_given_to_a_server_ends_with_it_and_handles_its_mailboxes_first() {
    let test = async {
        let system = ActorSystem::new().unwrap();
        let handled = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&handled);
        let slow = system.spawn(move || Slow(Arc::clone(&counter)));
        let server = Server::builder()
            .listen("127.0.0.1:0")
            .actors(system)
            .bind()
            .unwrap();
        let handle = server.handle();
        let serving = tokio::spawn(server.serve(axum::Router::new()));
        for _ in 0..50 {
            slow.tell(()).unwrap();
        }
        handle.drain();
        serving.await.unwrap().unwrap();
        assert_eq!(handled.load(Ordering::Relaxed), 50);
        assert!(slow.tell(()).is_err());
    };
    timeout(Duration::from_mins(1), test)
        .await
        .expect("the test hangs");
}
