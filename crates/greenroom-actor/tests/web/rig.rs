use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::extract::WebSocketUpgrade;
use axum::routing::{any, get};
use greenroom_actor::web::{SseSettings, WebSocketSettings, sse, websocket};
use greenroom_actor::{ActorSystem, ActorSystemBuilder};
use greenroom_timing::Span;
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::session::Session;

/// Fails a test that hangs.
pub(crate) async fn within<F: Future>(test: F) -> F::Output {
    timeout(Duration::from_mins(1), test)
        .await
        .expect("the test hangs")
}

/// A server of axum's whose connections are actors.
pub(crate) struct Rig {
    pub(crate) address: SocketAddr,
    pub(crate) system: ActorSystem,
    said: UnboundedReceiver<String>,
    end: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

#[derive(Default)]
pub(crate) struct Settings {
    pub(crate) system: ActorSystemBuilder,
    pub(crate) websocket: WebSocketSettings,
    pub(crate) sse: SseSettings,
    /// The span of the requests that open connections.
    pub(crate) opened_by: Option<Span>,
}

impl Rig {
    pub(crate) async fn start(settings: Settings) -> Self {
        let system = settings.system.build().unwrap();
        let (says, said) = unbounded_channel();
        let (of, also_says) = (system.clone(), says.clone());
        let sockets = move |upgrade: WebSocketUpgrade| {
            let says = says.clone();
            let session = move |outbox| Session {
                outbox,
                says: says.clone(),
                handled: 0,
            };
            let open = || websocket(upgrade, &of, &settings.websocket, session);
            let response = match &settings.opened_by {
                Some(span) => span.within(open),
                None => open(),
            };
            async { response }
        };
        let of = system.clone();
        let streams = move || {
            let says = also_says.clone();
            let session = move |outbox| Session {
                outbox,
                says: says.clone(),
                handled: 0,
            };
            let response = sse(&of, &settings.sse, session);
            async { response }
        };
        let app = Router::new()
            .route("/ws", any(sockets))
            .route("/sse", get(streams));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (end, ended) = oneshot::channel();
        let serving = tokio::spawn(async move {
            let serve = axum::serve(listener, app).with_graceful_shutdown(async {
                let _ = ended.await;
            });
            serve.await.unwrap();
        });
        Self {
            address,
            system,
            said,
            end,
            serving,
        }
    }

    /// Returns the next report of an actor.
    pub(crate) async fn hears(&mut self) -> String {
        self.said
            .recv()
            .await
            .expect("the server holds the other end")
    }

    /// Waits until an actor has started; returns the thread that it runs on.
    pub(crate) async fn hears_start(&mut self) -> String {
        let said = self.hears().await;
        let thread = said.strip_prefix("started on ");
        thread.unwrap_or_else(|| panic!("said {said}")).to_owned()
    }

    /// Drains the server.
    pub(crate) async fn end(self) {
        let _ = self.end.send(());
        self.serving.await.unwrap();
    }
}
