//! Spans of what a sampled request leads to: messages to actors, wherever the handler runs.

use std::net::SocketAddr;
use std::num::NonZeroU32;

use axum::Router;
use axum::extract::WebSocketUpgrade;
use axum::routing::{any, get};
use futures_util::{SinkExt, StreamExt};
use greenroom::actor::web::{Frame, Outbox, WebSocketSettings, websocket};
use greenroom::actor::{Actor, ActorRef, ActorSystem, Context, Dispatcher, Handler};
use greenroom::{FinishedRequest, FinishedSpan, Placement, RequestObserver, Server, Span, Stage};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_tungstenite::client_async;
use tokio_tungstenite::tungstenite::Message;

use crate::rig::{Rig, get as fetch, within};

#[derive(Debug)]
enum Told {
    Request(Box<FinishedRequest>),
    Span(Box<FinishedSpan>),
}

#[derive(Debug)]
struct Observer(mpsc::UnboundedSender<Told>);

impl RequestObserver for Observer {
    fn on_end(&self, request: FinishedRequest) {
        let _told = self.0.send(Told::Request(Box::new(request)));
    }

    fn on_span(&self, span: FinishedSpan) {
        let _told = self.0.send(Told::Span(Box::new(span)));
    }
}

struct Names;

impl Actor for Names {}

struct Name;
impl Handler<Name> for Names {
    type Reply = String;
    fn handle(&mut self, _: Name, _: &mut Context<Self>) -> String {
        std::thread::current().name().unwrap_or_default().to_owned()
    }
}

/// Tells its client what the other actor says.
struct Socket(Outbox<Frame>, ActorRef<Names>);

impl Actor for Socket {}

impl greenroom::actor::AsyncHandler<Frame> for Socket {
    type Reply = ();
    async fn handle(&mut self, _: Frame, _: &mut Context<Self>) {
        let name = self.1.ask(Name).await.unwrap();
        let _ = self.0.tell(name.as_str());
    }
}

fn system() -> (ActorSystem, ActorRef<Names>) {
    let builder = ActorSystem::builder().dispatcher("loop", Dispatcher::on_loop());
    let system = builder.dispatcher("names", Dispatcher::pool(1));
    let system = system.build().unwrap();
    let names = system.build(|| Names).dispatcher("names");
    let names = names.spawn().unwrap();
    (system, names)
}

fn app() -> Router {
    let (system, names) = system();
    let ask = |names: ActorRef<Names>| async move {
        tokio::task::yield_now().await;
        // What is spawned works for the request only if it is told so.
        let asking = async move { names.ask(Name).await.unwrap() };
        let span = Span::current().expect("all are sampled");
        tokio::spawn(span.carry(asking)).await.unwrap()
    };
    let (inline, staged) = (names.clone(), names.clone());
    let connect = move |upgrade: WebSocketUpgrade| {
        let names = names.clone();
        let make = move |outbox| Socket(outbox, names.clone());
        let response = websocket(upgrade, &system, &WebSocketSettings::default(), make);
        async { response }
    };
    let inline = get(move || ask(inline.clone()));
    let staged = get(move || ask(staged.clone()));
    Router::new()
        .route("/inline", inline)
        .route("/ws", any(connect))
        .route_layer(Placement::inline())
        .merge(
            Router::new()
                .route("/staged", staged)
                .route_layer(Placement::on(Stage::global())),
        )
}

/// Returns what one request has led to: its own end, and so many spans.
async fn told(
    all: &mut mpsc::UnboundedReceiver<Told>,
    spans: usize,
) -> (FinishedRequest, Vec<FinishedSpan>) {
    let (mut request, mut below) = (None, Vec::new());
    while request.is_none() || below.len() < spans {
        match all.recv().await.unwrap() {
            Told::Request(told) => request = Some(*told),
            Told::Span(span) => below.push(*span),
        }
    }
    (request.unwrap(), below)
}

#[tokio::test]
async fn messages_of_a_handler_have_spans_below_the_requests_wherever_it_runs() {
    within(async {
        let (observer, mut all) = mpsc::unbounded_channel();
        let builder = Server::builder().trace_requests(NonZeroU32::MIN, Observer(observer));
        let rig = Rig::with(builder, app());
        // The server's own placement yields to the inner one with the first request.
        assert_eq!(fetch(rig.url("/inline")).await.1, "names-0");
        told(&mut all, 1).await;
        for path in ["/inline", "/staged"] {
            assert_eq!(fetch(rig.url(path)).await.1, "names-0");
            let (request, spans) = told(&mut all, 1).await;
            assert_eq!(request.path, path);
            assert_eq!(request.times.stage.is_some(), path == "/staged");
            assert_eq!(spans[0].name, "handle Names");
            assert_eq!(spans[0].trace_id, request.trace.trace_id());
            assert_eq!(spans[0].parent_id, Some(request.trace.span_id()), "{path}");
        }
        let (mut socket, _) = open(rig.address).await;
        socket.send(Message::text("who?")).await.unwrap();
        let said = socket.next().await.unwrap().unwrap();
        assert_eq!(said.into_text().unwrap(), "names-0");
        let (request, mut spans) = told(&mut all, 3).await;
        spans.sort_by_key(|span| span.began);
        let [message, socket_span, names] = &spans[..] else {
            panic!("{spans:#?}");
        };
        let link = message.link.expect("it is linked");
        assert_eq!(link.trace_id, request.trace.trace_id());
        assert_eq!(link.span_id, request.trace.span_id());
        assert_ne!(message.trace_id, request.trace.trace_id());
        assert_eq!(socket_span.name, "handle Socket");
        assert_eq!(socket_span.parent_id, Some(message.span_id));
        assert_eq!(
            (&*names.name, names.parent_id),
            ("handle Names", Some(socket_span.span_id))
        );
        drop(socket);
        rig.end().await;
    })
    .await;
}

async fn open(
    address: SocketAddr,
) -> (
    tokio_tungstenite::WebSocketStream<TcpStream>,
    tokio_tungstenite::tungstenite::handshake::client::Response,
) {
    let stream = TcpStream::connect(address).await.unwrap();
    client_async(format!("ws://{address}/ws"), stream)
        .await
        .unwrap()
}
