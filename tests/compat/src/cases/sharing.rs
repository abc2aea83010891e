//! State shared by handlers on any thread: clients, pools, tasks.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::middleware::{self, Next};
use axum::routing::{get as on_get, post};
use futures_util::future::{BoxFuture, FutureExt, try_join_all};
use rusqlite::Connection;
use tokio::sync::{Mutex as AsyncMutex, OnceCell, broadcast, mpsc};
use tokio::task::JoinSet;

use crate::harness::Step::{Chunk, Connect, End, Head, Note, Response};
use crate::harness::{App, Case, Client, Ending, Log, Rig, Step, ask, get};

/// Connections at once: enough for each loop to have some.
const CLIENTS: usize = 8;

pub(crate) fn cases() -> Vec<Case> {
    let asking = |name, app, requests: Vec<Step>| Case::apart(name, App::Router(app), requests);
    vec![
        Case::script("sharing/reqwest", App::Router(proxy), many_at_once),
        Case::script("sharing/sqlite", App::Router(database), many_at_once),
        Case::script("sharing/async-mutex", App::Router(counter), many_at_once),
        asking(
            "sharing/reqwest-in-turn",
            proxy,
            vec![get("/1"), get("/2"), get("/3")],
        ),
        asking(
            "sharing/sqlite-in-turn",
            database,
            vec![get("/1"), get("/2"), get("/3")],
        ),
        asking(
            "sharing/spawn",
            tasks,
            vec![
                get("/spawn"),
                get("/join-set"),
                get("/blocking"),
                get("/sleep"),
                get("/file"),
            ],
        ),
        asking(
            "sharing/block-in-place",
            tasks,
            vec![get("/block-in-place")],
        ),
        asking(
            "sharing/task-locals",
            task_locals,
            vec![
                ask("GET /", &["x-user: ada"], ""),
                ask("GET /", &["x-user: bob"], ""),
            ],
        ),
        Case::steps(
            "sharing/background-task",
            App::Router(tasks),
            vec![get("/background"), Response, Note, End],
        ),
        Case::steps(
            "sharing/broadcast",
            App::Router(chat),
            vec![
                get("/listen"),
                Head,
                Note,
                Connect,
                ask("POST /say", &[], "hello"),
                Response,
                Note,
                End,
            ],
        ),
        Case::steps(
            "sharing/channel-to-a-stream",
            App::Router(chat),
            vec![get("/count"), Head, Chunk, Chunk, Chunk, End],
        ),
    ]
}

/// Sends the same request from several clients at once. Their responses come in no order.
fn many_at_once(client: &mut Client) -> BoxFuture<'_, Result<(), Ending>> {
    async move {
        let asked = (0..CLIENTS).map(|number| {
            let opened = client.connect();
            async move {
                let (mut wire, mut log) = (opened.await, Log::new());
                for turn in 0..3 {
                    let request = get(&format!("/{}", number * 3 + turn));
                    let Step::Send(bytes) = request else {
                        unreachable!("a request is sent")
                    };
                    wire.send(&bytes).await?;
                    wire.response(&mut log).await?;
                }
                Ok::<_, Ending>(log)
            }
        });
        let mut logs = try_join_all(asked).await?;
        logs.sort();
        client.log.extend(logs.concat());
        Ok(())
    }
    .boxed()
}

#[derive(Clone, Debug)]
struct Proxy {
    client: reqwest::Client,
    upstream: Arc<OnceCell<SocketAddr>>,
}

/// Forwards requests to a server of its own, which the first request starts.
fn proxy(_: Rig) -> Router {
    async fn upstream() -> SocketAddr {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let told = |Path(word): Path<String>| async move { format!("upstream says {word}") };
        let app = Router::new().route("/{word}", on_get(told));
        tokio::spawn(async move { axum::serve(listener, app).await });
        address
    }
    let ask = |State(proxy): State<Proxy>, Path(word): Path<String>| async move {
        let address = proxy.upstream.get_or_init(upstream).await;
        let url = format!("http://{address}/{word}");
        proxy
            .client
            .get(url)
            .send()
            .await
            .unwrap()
            .text()
            .await
            .unwrap()
    };
    // An earlier server may have installed it.
    let _installed = rustls::crypto::ring::default_provider().install_default();
    let proxy = Proxy {
        client: reqwest::Client::new(),
        upstream: Arc::default(),
    };
    Router::new()
        .route("/{word}", on_get(ask))
        .with_state(proxy)
}

fn database(_: Rig) -> Router {
    type Database = Arc<Mutex<Connection>>;
    let connection = Connection::open_in_memory().unwrap();
    connection
        .execute("CREATE TABLE seen (word TEXT)", ())
        .unwrap();
    let database = Arc::new(Mutex::new(connection));
    let insert = |State(database): State<Database>, Path(word): Path<String>| async move {
        let query = move || {
            let database = database.lock().unwrap();
            database
                .execute("INSERT INTO seen VALUES (?1)", [&word])
                .unwrap();
            let find = "SELECT count(*) FROM seen WHERE word = ?1";
            database
                .query_row(find, [&word], |row| row.get::<_, u32>(0))
                .unwrap()
        };
        tokio::task::spawn_blocking(query)
            .await
            .unwrap()
            .to_string()
    };
    Router::new()
        .route("/{word}", on_get(insert))
        .with_state(database)
}

/// A counter for one request at a time, on any thread.
fn counter(_: Rig) -> Router {
    let count = |State(busy): State<Arc<AsyncMutex<bool>>>| async move {
        let mut busy = busy.lock().await;
        let was_busy = std::mem::replace(&mut *busy, true);
        tokio::time::sleep(Duration::from_millis(1)).await;
        *busy = false;
        was_busy.to_string()
    };
    Router::new()
        .route("/{word}", on_get(count))
        .with_state(Arc::default())
}

fn tasks(rig: Rig) -> Router {
    let join_set = || async {
        let mut set = JoinSet::new();
        for number in 0..10_u32 {
            set.spawn(async move { number });
        }
        set.join_all().await.into_iter().sum::<u32>().to_string()
    };
    let background = move || async move {
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(5)).await;
            rig.note("done in the background");
        });
        "begun"
    };
    let sleep = || async {
        tokio::time::sleep(Duration::from_millis(5)).await;
        let late = tokio::time::timeout(Duration::from_millis(5), std::future::pending::<()>());
        format!("slept {}", late.await.is_err())
    };
    let file = || async {
        let file = tempfile::NamedTempFile::new().unwrap();
        tokio::fs::write(file.path(), "written").await.unwrap();
        tokio::fs::read_to_string(file.path()).await.unwrap()
    };
    Router::new()
        .route(
            "/spawn",
            on_get(|| async { tokio::spawn(async { "spawned" }).await.unwrap() }),
        )
        .route("/join-set", on_get(join_set))
        .route(
            "/blocking",
            on_get(|| async { tokio::task::spawn_blocking(|| "blocked").await.unwrap() }),
        )
        .route(
            "/block-in-place",
            on_get(|| async { tokio::task::block_in_place(|| "blocked in place") }),
        )
        .route("/background", on_get(background))
        .route("/sleep", on_get(sleep))
        .route("/file", on_get(file))
}

tokio::task_local! {
    static USER: String;
}

fn task_locals(_: Rig) -> Router {
    let scoped = middleware::from_fn(|request: Request, next: Next| async move {
        let user = request.headers().get("x-user");
        let user = user
            .map_or("nobody", |user| user.to_str().unwrap())
            .to_owned();
        USER.scope(user, next.run(request)).await
    });
    let told = || async {
        let before = USER.get();
        tokio::time::sleep(Duration::from_millis(1)).await;
        format!("{before} {}", USER.get())
    };
    Router::new().route("/", on_get(told)).layer(scoped)
}

/// Handlers that talk to each other.
fn chat(rig: Rig) -> Router {
    use axum::body::Body;
    use futures_util::stream;
    let (sender, _) = broadcast::channel::<String>(8);
    let said = sender.clone();
    let listen = move || async move {
        let mut heard = sender.subscribe();
        rig.note("listening");
        tokio::spawn(async move {
            let word = heard.recv().await.unwrap();
            rig.note(format!("heard {word}"));
        });
        "listening"
    };
    let say = move |word: String| async move { said.send(word).unwrap().to_string() };
    let count = || async {
        let (sender, receiver) = mpsc::channel(1);
        tokio::spawn(async move {
            for number in 0..2 {
                sender.send(number).await.unwrap();
            }
        });
        Body::from_stream(stream::unfold(receiver, |mut receiver| async move {
            let number: u32 = receiver.recv().await?;
            Some((
                Ok::<_, std::convert::Infallible>(number.to_string()),
                receiver,
            ))
        }))
    };
    Router::new()
        .route("/listen", on_get(listen))
        .route("/say", post(say))
        .route("/count", on_get(count))
}
