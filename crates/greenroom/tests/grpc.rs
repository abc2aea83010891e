//! gRPC by tonic behind Greenroom, over HTTP/2 with prior knowledge: calls of all four kinds, and
//! streams that last for hours.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::convert::Infallible;
use std::future::ready;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use bytes::{Buf, BufMut};
use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use greenroom::{Address, Server, SlowBodies};
use http::uri::PathAndQuery;
use tokio::task::{LocalSet, spawn_local};
use tokio::time::{sleep, timeout};
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::server::NamedService;
use tonic::service::Routes;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Response, Status, Streaming};
use tower::{Service, service_fn};

const MINUTE: Duration = Duration::from_mins(1);
const HOURS: u64 = 3;

/// Messages that are numbers, of eight bytes each.
#[derive(Clone, Copy)]
struct Numbers;

impl Codec for Numbers {
    type Encode = u64;
    type Decode = u64;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Numbers {
    type Item = u64;
    type Error = Status;

    fn encode(&mut self, number: u64, out: &mut EncodeBuf<'_>) -> Result<(), Status> {
        out.put_u64(number);
        Ok(())
    }
}

impl Decoder for Numbers {
    type Item = u64;
    type Error = Status;

    fn decode(&mut self, input: &mut DecodeBuf<'_>) -> Result<Option<u64>, Status> {
        let number = input.try_get_u64();
        let number = number.map_err(|error| Status::internal(error.to_string()))?;
        Ok(Some(number))
    }
}

const DOUBLE: &str = "/test.Calculator/Double";
const COUNT_TO: &str = "/test.Calculator/CountTo";
const SUM: &str = "/test.Calculator/Sum";
const SUMS: &str = "/test.Calculator/Sums";

type Numbered = BoxStream<'static, Result<u64, Status>>;

async fn double(number: Request<u64>) -> Result<Response<u64>, Status> {
    Ok(Response::new(2 * number.into_inner()))
}

async fn count_to(last: Request<u64>) -> Result<Response<Numbered>, Status> {
    let numbers = stream::iter((1..=last.into_inner()).map(Ok));
    Ok(Response::new(numbers.boxed()))
}

async fn sum(numbers: Request<Streaming<u64>>) -> Result<Response<u64>, Status> {
    let numbers = numbers.into_inner();
    let sum = numbers.try_fold(0, |sum, number| ready(Ok(sum + number)));
    Ok(Response::new(sum.await?))
}

async fn sums(numbers: Request<Streaming<u64>>) -> Result<Response<Numbered>, Status> {
    let sums = numbers.into_inner().scan(0, |sum, number| {
        ready(Some(number.map(|number| {
            *sum += number;
            *sum
        })))
    });
    Ok(Response::new(sums.boxed()))
}

/// A service with these four methods, as tonic's generator would make it.
#[derive(Clone)]
struct Calculator;

impl NamedService for Calculator {
    const NAME: &'static str = "test.Calculator";
}

type Outcome = Result<http::Response<tonic::body::Body>, Infallible>;

impl Service<http::Request<tonic::body::Body>> for Calculator {
    type Response = http::Response<tonic::body::Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Outcome> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<tonic::body::Body>) -> Self::Future {
        Box::pin(async move {
            let mut grpc = tonic::server::Grpc::new(Numbers);
            Ok(match request.uri().path() {
                DOUBLE => grpc.unary(service_fn(double), request).await,
                COUNT_TO => grpc.server_streaming(service_fn(count_to), request).await,
                SUM => grpc.client_streaming(service_fn(sum), request).await,
                SUMS => grpc.streaming(service_fn(sums), request).await,
                _ => Status::unimplemented("no such method").into_http(),
            })
        })
    }
}

fn app() -> Router {
    Routes::new(Calculator).into_axum_router()
}

/// Returns a server on a free port, and its address.
fn bind() -> (Server, SocketAddr) {
    let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
    let loops = 2.try_into().unwrap();
    let server = Server::builder().loops(loops).listen(any_port).bind();
    let server = server.unwrap();
    let Address::Tcp(address) = server.local_addresses()[0] else {
        panic!("a TCP address was named")
    };
    (server, address)
}

struct Client(tonic::client::Grpc<Channel>);

impl Client {
    async fn connect(address: SocketAddr) -> Self {
        let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
        Self(tonic::client::Grpc::new(endpoint.connect().await.unwrap()))
    }

    async fn double(&mut self, number: u64) -> u64 {
        self.0.ready().await.unwrap();
        let path = PathAndQuery::from_static(DOUBLE);
        let doubled = self.0.unary(Request::new(number), path, Numbers).await;
        doubled.unwrap().into_inner()
    }

    async fn count_to(&mut self, last: u64) -> Vec<u64> {
        self.0.ready().await.unwrap();
        let path = PathAndQuery::from_static(COUNT_TO);
        let numbers = self
            .0
            .server_streaming(Request::new(last), path, Numbers)
            .await;
        numbers.unwrap().into_inner().try_collect().await.unwrap()
    }

    async fn sum(&mut self, numbers: impl Stream<Item = u64> + Send + 'static) -> u64 {
        self.0.ready().await.unwrap();
        let path = PathAndQuery::from_static(SUM);
        let sum = self
            .0
            .client_streaming(Request::new(numbers), path, Numbers)
            .await;
        sum.unwrap().into_inner()
    }

    async fn sums(&mut self, numbers: impl Stream<Item = u64> + Send + 'static) -> Vec<u64> {
        self.0.ready().await.unwrap();
        let path = PathAndQuery::from_static(SUMS);
        let sums = self.0.streaming(Request::new(numbers), path, Numbers).await;
        sums.unwrap().into_inner().try_collect().await.unwrap()
    }
}

#[tokio::test]
async fn calls_of_all_four_kinds_are_served() {
    let test = async {
        let (server, address) = bind();
        let handle = server.handle();
        let serving = tokio::spawn(server.serve(app()));
        let mut client = Client::connect(address).await;
        assert_eq!(client.double(21).await, 42);
        assert!(client.count_to(1_000).await.into_iter().eq(1..=1_000));
        // Of 13 bytes each, so of 3.9 MB.
        assert_eq!(client.sum(stream::iter(1..=300_000)).await, 45_000_150_000);
        assert_eq!(client.sums(stream::iter(1..=4)).await, [1, 3, 6, 10]);
        drop(client);
        handle.drain();
        serving.await.unwrap().unwrap();
    };
    timeout(MINUTE, test).await.expect("the test hangs");
}

/// A message a minute, for hours.
fn slowly() -> impl Stream<Item = u64> + Send + 'static {
    stream::iter(0..60 * HOURS).then(|_| async {
        sleep(MINUTE).await;
        1
    })
}

async fn on_paused_clock(app: Router, test: impl AsyncFnOnce(Client)) {
    let (server, address) = bind();
    let local = LocalSet::new();
    let test = local.run_until(async {
        let serving = spawn_local(server.serve_local(app));
        test(Client::connect(address).await).await;
        serving.abort();
    });
    let day = Duration::from_hours(24);
    timeout(day, test).await.expect("the test hangs");
}

#[tokio::test(start_paused = true)]
async fn a_bidirectional_stream_lasts_for_hours() {
    on_paused_clock(app(), async |mut client| {
        let sums = client.sums(slowly()).await;
        assert!(sums.into_iter().eq(1..=60 * HOURS));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_clients_stream_lasts_for_hours_where_the_route_says_so() {
    on_paused_clock(app().layer(SlowBodies), async |mut client| {
        assert_eq!(client.sum(slowly()).await, 60 * HOURS);
    })
    .await;
}
