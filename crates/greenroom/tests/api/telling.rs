//! The client of a request, and the warnings of a server about what it cannot place.

use std::convert::Infallible;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::thread;

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use greenroom::{
    Address, Client, ClientKey, IntoApp, OnLoops, Placed, Placement, RouteStatus, Server,
    SharedService,
};
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Bytes;
use tower::service_fn;

use crate::rig::{Rig, any_port, ask, get as fetch, http1, within};

async fn client_and_thread() -> String {
    tokio::task::yield_now().await;
    let thread = thread::current();
    format!(
        "{} {}",
        Client::current(),
        thread.name().unwrap_or_default()
    )
}

fn router(path: &str) -> Router {
    Router::new().route(path, get(client_and_thread))
}

/// The first request is on a stage; with an inner placement the second is on a loop.
async fn works_for_its_client<A, Kind>(app: A, path: &str)
where
    A: IntoApp<Kind> + Send + 'static,
    Kind: 'static,
{
    within(async {
        let rig = Rig::start(app);
        for thread in ["stage", "loop"] {
            let said = fetch(rig.url(path)).await.1;
            assert!(said.starts_with(&format!("127.0.0.1 {thread}-")), "{said}");
        }
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn the_client_is_known_wherever_a_handler_runs() {
    let inline = |path| router(path).route_layer(Placement::inline());
    works_for_its_client(inline("/client/bare"), "/client/bare").await;
    let app = inline("/client/told").into_make_service_with_connect_info::<SocketAddr>();
    works_for_its_client(app, "/client/told").await;
}

#[tokio::test]
async fn a_client_is_who_the_key_says() {
    within(async {
        let key = ClientKey::from_fn(|parts| {
            let name = parts.headers.get("x-api-key")?.to_str().ok()?;
            Some(Client::named(name))
        });
        let builder = Server::builder().client_key(key);
        let server = builder.listen(any_port()).bind().unwrap();
        let Address::Tcp(address) = server.local_addresses()[0] else {
            panic!("a TCP address was named")
        };
        let handle = server.handle();
        let app = router("/client/named").route_layer(Placement::inline());
        let serving = tokio::spawn(server.serve(app));
        let url = format!("http://{address}/client/named");
        for thread in ["stage", "loop"] {
            let request = Request::get(&url).header("x-api-key", "alice");
            let request = request.body(Full::<Bytes>::default()).unwrap();
            let said = ask(&http1(), request).await.1;
            assert!(said.starts_with(&format!("alice {thread}-")), "{said}");
        }
        let said = fetch(url).await.1;
        assert!(said.starts_with("127.0.0.1 loop-"), "{said}");
        handle.drain();
        serving.await.unwrap().unwrap();
    })
    .await;
}

/// The log of the test's thread, on which a server starts.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the log until the first response, that response, which names the thread, and the routes.
async fn said_of<A, Kind>(app: A) -> (String, String, Vec<RouteStatus>)
where
    A: IntoApp<Kind> + Send + 'static,
    Kind: 'static,
{
    within(async {
        let log = Log::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_max_level(tracing_subscriber::filter::LevelFilter::WARN)
            .with_writer(move || writer.clone())
            .finish();
        let _said_here = tracing::subscriber::set_default(subscriber);
        let rig = Rig::start(app);
        let thread = fetch(rig.url("/said")).await.1;
        let routes = rig.handle.status().routes;
        rig.end().await;
        let log = log.0.lock().unwrap().clone();
        (String::from_utf8(log).unwrap(), thread, routes)
    })
    .await
}

fn thread_name() -> Body {
    Body::from(thread::current().name().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn what_is_not_send_stays_on_the_loops_and_that_is_said() {
    let app = service_fn(|_: Request<Body>| async {
        let kept = Rc::new(());
        tokio::task::yield_now().await;
        drop(kept);
        Ok::<_, Infallible>(Response::new(thread_name()))
    });
    let (said, thread, _) = said_of(OnLoops(app)).await;
    assert!(thread.starts_with("loop-"), "{thread}");
    assert!(said.contains("WARN"), "{said}");
    assert!(said.contains("stays on the loops"), "{said}");
    assert!(said.contains("ServiceFn<"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[tokio::test]
async fn an_app_that_does_not_place_itself_is_said() {
    let app = SharedService(service_fn(|_| async {
        Ok::<_, Infallible>(Response::new(thread_name()))
    }));
    let (said, thread, _) = said_of(app).await;
    assert!(thread.starts_with("loop-"), "{thread}");
    assert!(said.contains("SharedService<"), "{said}");
}

#[tokio::test]
async fn of_what_is_placed_nothing_is_said() {
    let app = Router::new().route("/said", get(|| async { thread_name() }));
    let (said, thread, routes) = said_of(app.into_make_service()).await;
    assert!(thread.starts_with("stage-"), "{thread}");
    assert_eq!(said, "");
    let mut said = routes.iter().filter(|route| route.path == "/said");
    assert!(said.any(|route| route.placed == Placed::AutoStaged));
}
