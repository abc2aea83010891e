//! Both tests in axum, as its users and tokio's documentation would have them: what computes is on
//! the blocking pool, as many at a time as there are cores; pages come by hyper's pooled client.

use std::mem;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use axum::routing::get;
use clap::Parser;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use num_bigint::BigUint;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

const N_MAX: u64 = 100_000;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, Parser)]
struct Options {
    #[arg(long)]
    listen: SocketAddr,
    /// Page that is tunnelled
    #[arg(long)]
    third_party: Uri,
}

#[derive(Clone)]
struct Application {
    client: Client<HttpConnector, Body>,
    third_party: Uri,
    /// tokio's advice where many computations are spawned.
    computing: Arc<Semaphore>,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let application = Application {
        client: client(),
        third_party: options.third_party,
        computing: Arc::new(Semaphore::new(available_parallelism()?.get())),
    };
    let router = Router::new()
        .route("/fib/{n}", get(fib))
        .route("/proxy", get(proxy))
        .with_state(application);
    let listener = TcpListener::bind(options.listen).await?;
    axum::serve(listener, router).await?;
    Ok(())
}

fn client() -> Client<HttpConnector, Body> {
    let mut connector = HttpConnector::new();
    connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
    connector.set_nodelay(true);
    Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .build(connector)
}

async fn fib(
    State(application): State<Application>,
    Path(n): Path<u64>,
) -> Result<String, StatusCode> {
    if n > N_MAX {
        return Err(StatusCode::BAD_REQUEST);
    }
    let permit = application.computing.acquire_owned().await;
    let permit = permit.map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
    let computed = spawn_blocking(move || {
        let text = format!("{}\n", fibonacci(n));
        drop(permit);
        text
    });
    computed
        .await
        .map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)
}

async fn proxy(State(application): State<Application>) -> Result<Response, StatusCode> {
    let response = application.client.get(application.third_party);
    let response = timeout(RESPONSE_TIMEOUT, response).await;
    let response = response.map_err(|_| StatusCode::GATEWAY_TIMEOUT)?;
    let (head, body) = response.map_err(|_| StatusCode::BAD_GATEWAY)?.into_parts();
    let mut response = Response::new(Body::new(body));
    *response.status_mut() = head.status;
    for name in [CONTENT_LENGTH, CONTENT_TYPE] {
        if let Some(value) = head.headers.get(&name) {
            response.headers_mut().insert(name, value.clone());
        }
    }
    Ok(response)
}

fn fibonacci(n: u64) -> BigUint {
    let mut current = BigUint::from(0_u8);
    let mut next = BigUint::from(1_u8);
    for _ in 0..n {
        current += &next;
        mem::swap(&mut current, &mut next);
    }
    current
}
